#include "report/sections.hpp"

namespace hetseq::detail {

// These six colours can be told apart by hue or lightness with any kind of colour vision, each with
// a contrast of at least 3 to its background. Phases use them in the same order as runs and ranks.
const char* style() {
    return R"css(
:root { color-scheme: light dark; --narrowest: 27rem; --page: #ffffff; --panel: #f5f5f3; --text: #1c1c1c; --soft: #55555a; --line: #d4d4d2;
  --note: #7a4b00; --c0: #0072b2; --c1: #d55e00; --c2: #00805f; --c3: #a23b8f; --c4: #7f7400; --c5: #5f6368; }
@media (prefers-color-scheme: dark) {
  :root { --page: #16181b; --panel: #202327; --text: #ececec; --soft: #b4b8bd; --line: #43484e;
    --note: #f0c060; --c0: #56b4e9; --c1: #f08a3c; --c2: #2fc79a; --c3: #e08cc8; --c4: #e6d84a; --c5: #b5b9bf; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 110rem; background: var(--page); color: var(--text);
  font: 15px/1.45 system-ui, "DejaVu Sans", sans-serif; }
h1 { font-size: 1.4rem; margin: 0 0 .5rem; }
h2 { font-size: 1.1rem; margin: 1.6rem 0 .6rem; }
small, footer { color: var(--soft); font-weight: normal; }
footer { margin-top: 2rem; font-size: .85rem; }
.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, var(--narrowest)), 1fr)); gap: .8rem; align-items: start; }
figure { margin: 0; padding: .6rem .7rem .4rem; background: var(--panel); border-radius: 6px; min-width: 0; }
figcaption { font-weight: 600; overflow-wrap: anywhere; }
.legend { font-size: .82rem; color: var(--soft); }
.entry { display: inline-block; margin-right: .9rem; overflow-wrap: anywhere; }
.key { width: 26px; height: 10px; margin-right: .35rem; }
.box { width: 10px; height: 10px; margin-right: .35rem; }
.chart { display: block; width: 100%; height: auto; margin-top: .3rem; }
.chart text { font: 12px system-ui, "DejaVu Sans", sans-serif; fill: var(--soft); paint-order: stroke; stroke: var(--panel); stroke-width: 3px; stroke-linejoin: round; }
path.lines { stroke: var(--line); fill: none; stroke-width: 1; }
path.mark { stroke: var(--soft); fill: none; stroke-width: 1; }
.c0 { --c: var(--c0); } .c1 { --c: var(--c1); } .c2 { --c: var(--c2); }
.c3 { --c: var(--c3); } .c4 { --c: var(--c4); } .c5 { --c: var(--c5); }
.curve { stroke: var(--c); fill: none; stroke-width: 1.8; stroke-linejoin: round; stroke-linecap: round; }
.band { stroke: var(--c); fill: none; stroke-width: 1.3; stroke-opacity: .35; }
.dots { stroke: var(--c); fill: none; stroke-width: 5; stroke-linecap: round; }
.dashed { stroke-dasharray: 5 4; }
rect.c0, rect.c1, rect.c2, rect.c3, rect.c4, rect.c5 { fill: var(--c); }
.part { stroke: var(--panel); stroke-width: .6; }
.part:hover { opacity: .75; }
.tip { fill: var(--text); fill-opacity: 0; }
.tip:hover { fill-opacity: .1; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .92rem; }
th, td { text-align: left; vertical-align: top; padding: .2rem .9rem .2rem 0; border-bottom: 1px solid var(--line); }
th { font-weight: 600; overflow-wrap: anywhere; min-width: 7rem; }
th[scope=row] { position: sticky; left: 0; background: var(--page); overflow-wrap: normal; }
td.number { font-variant-numeric: tabular-nums; white-space: nowrap; }
ul { margin: .4rem 0; padding-left: 1.2rem; }
.note { color: var(--note); }
details { margin: .4rem 0; }
summary { cursor: pointer; overflow-wrap: anywhere; }
@media (max-width: 56rem) {
  :root { --narrowest: 21rem; }
  .chart text { font-size: 13.5px; } }
@media (max-width: 30rem) {
  body { padding: .6rem; }
  figure { padding: .5rem .4rem .3rem; } }
)css";
}

}  // namespace hetseq::detail
