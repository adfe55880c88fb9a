#!/usr/bin/env bash
# hetseq report: one well-formed page without links, of a finished run, a killed one and both.
source "$(dirname "$0")/common.sh"
make_images
run_ranks 2 "$bin/hetseq" train --task mnist --data "$work/data/train*.h5" --valid-data "$work/data/t10k*.h5" \
  --batch-size 32 --max-sentences 16 --threads 1 --max-update 40 --log-interval 2 --valid-interval 20 \
  --cache-dir "$work/cache" --save-dir "$work/finished"
expect_ok run
mkdir "$work/killed"
cp "$work/finished/config.cfg" "$work/killed"
head -c -20 "$work/finished/metrics.jsonl" >"$work/killed/metrics.jsonl"

# report NAME FIGURES RUN...: makes NAME.html, which must be XML, need nothing else, have so many figures with curves
# or bars within their drawing, and texts on top of everything they tell.
report() {
  local page=$work/$1.html figures=$2; shift 2
  rc=0; "$bin/hetseq" report "$@" --output "$page" >"$work/log" 2>&1 || rc=$?
  expect_ok "report of $*"
  python3 - "$page" "$figures" <<'PY' || fail "the report of $*"
import re, sys, xml.etree.ElementTree as ET
text = open(sys.argv[1], encoding="utf-8").read()
for foreign in ("http:", "https:", "<script", "<link", "@import", "url(", "src=", "href="):
    assert foreign not in text, foreign
root = ET.fromstring(text)
figures = root.findall(".//figure")
assert len(figures) == int(sys.argv[2]), [figure.find("figcaption").text for figure in figures]
for figure in figures:
    chart = figure.find("svg")
    _, _, width, height = map(float, chart.get("viewBox").split())
    assert chart.findall(".//title"), figure.find("figcaption").text
    for rect in chart.findall(".//rect"):
        x, y, w, h = (float(rect.get(key)) for key in ("x", "y", "width", "height"))
        assert 0 <= x and x + w <= width + 0.2 and 0 <= y and y + h <= height + 0.2, rect.attrib
    for x, y in re.findall(r"[ML](\S+) (\S+?)(?=[A-Za-z\"])", " ".join(path.get("d") for path in chart.findall("path"))):
        assert 0 <= float(x) <= width and 0 <= float(y) <= height, (x, y)
PY
}
# A former report is replaced, and nothing else.
cp "$work/finished/config.cfg" "$work/config.cfg"
rc=0; "$bin/hetseq" report "$work/finished" --output "$work/config.cfg" >"$work/log" 2>&1 || rc=$?
expect_error 78 'only a former report is replaced'
cmp "$work/finished/config.cfg" "$work/config.cfg" || fail 'a file that is no report was replaced'
# Loss, accuracy, rate, update's time, learning rate, gradient norm; time by rank, allocation, bound.
report finished 9 "$work/finished"
grep -q 'against its bound' "$work/finished.html" || fail 'no bound'
report killed 8 "$work/killed"
grep -q 'The last line of metrics.jsonl is cut off' "$work/killed.html" || fail 'the torn line is not told'
grep -q 'There is no summary.json' "$work/log" || { cat "$work/log"; fail 'the missing summary is not told'; }
report both 11 "$work/finished" "$work/killed"

rc=0; "$bin/hetseq" report "$work/data" >"$work/log" 2>&1 || rc=$?
expect_error 66 "$work/data holds no run"
rc=0; "$bin/hetseq" report "$work/none" >"$work/log" 2>&1 || rc=$?
expect_error 66 "$work/none"
rc=0; "$bin/hetseq" report >"$work/log" 2>&1 || rc=$?
expect_error 64 'RUN is missing'
rc=0; "$bin/hetseq" report "$work/finished" --output "$work/none/report.html" >"$work/log" 2>&1 || rc=$?
expect_error 74 "$work/none/report.html"

# What a run left is read without Python, although its task was in Python.
mkdir "$work/python"
cp "$work"/finished/*.{json,jsonl} "$work/python"
{ cat "$work/finished/config.cfg"; echo 'task-file = my_task.py'; } >"$work/python/config.cfg"
export HETSEQ_PYTHON=$work/no-python
report python 9 "$work/python"
rc=0; "$bin/hetseq" checkpoint list "$work/python" >"$work/log" 2>&1 || rc=$?
! grep -q 'no-python' "$work/log" || { cat "$work/log"; fail 'checkpoint list of a task in Python'; }
rc=0; "$bin/hetseq" evaluate "$work/python" >"$work/log" 2>&1 || rc=$?
expect_error 78 'no-python'

# A Python that lacks the package is named.
printf '#!/bin/sh\nexec python3 -I -S "$@"\n' >"$HETSEQ_PYTHON"
chmod +x "$HETSEQ_PYTHON"
rc=0; "$bin/hetseq" train my_task.py --data none >"$work/log" 2>&1 || rc=$?
expect_error 78 'has no package hetseq'
