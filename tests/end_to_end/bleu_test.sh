#!/usr/bin/env bash
# hetseq bleu: sacreBLEU's lines, JSON and signatures for the pinned texts, and errors that name files and lines.
# shellcheck source=tests/end_to_end/common.sh
source "$(dirname "$0")/common.sh"

# The first corpus of tests/reference/bleu.json, and what sacreBLEU prints for it.
python3 - "$work" <<'PY'
import json, pathlib, sys
folder = pathlib.Path(sys.argv[1])
corpus = json.load(open("tests/reference/bleu.json"))["corpora"][0]
def write(name, lines):
    (folder / name).write_text("".join(line + "\n" for line in lines), encoding="utf-8", newline="\n")
write("hypotheses", corpus["hypotheses"])
for number, lines in enumerate(corpus["references"], 1):
    write(f"reference{number}", lines)
write("sentences", corpus["sentences"])
bleu, chrf = corpus["json"]
write("bleu.json", [bleu])
write("both.json", [f"[\n{bleu},\n{chrf}\n]"])
item = next(item for item in corpus["bleu"] if (item["tokenizer"], item["lowercase"], item["references"]) == ("intl", True, 3))
write("intl", [item["scores"][2][-1]])
item = next(item for item in corpus["chrf"] if (item["word_order"], item["lowercase"], item["references"]) == (2, True, 2))
write("chrf", [item["line"]])
PY
cd "$work"

# prints EXPECTED_FILE WORD...: what hetseq bleu prints for the hypotheses.
prints() {
  local expected=$1; shift
  "$bin/hetseq" bleu "$@" <hypotheses >printed 2>log || { cat log; fail "hetseq bleu $*"; }
  diff -u "$expected" printed || fail "hetseq bleu $* does not print what sacreBLEU prints"
}
prints bleu.json reference1 --json
prints both.json reference1 --json --metrics chrf,bleu
prints sentences reference1 --sentence-level
prints intl reference1 reference2 reference3 --tokenize intl --lowercase --smooth-method floor --smooth-value 0.03 --width 2
prints chrf reference1 reference2 --metrics chrf --chrf-word-order 2 --chrf-lowercase --width 2
prints bleu.json reference1 --json --input hypotheses
python3 -c 'import json; print(json.load(open("bleu.json"))["score"])' >score
prints score reference1 --score-only

"$bin/hetseq" bleu reference1 --sentence-level --json <hypotheses >printed
python3 - <<'PY' || fail 'the JSON of segments'
import json
scores = [json.loads(line) for line in open("printed")]
lines = open("sentences").read().splitlines()
assert len(scores) == len(lines)
for score, line in zip(scores, lines):
    assert f"BLEU|{score['signature']} = {score['score']} {score['verbose_score']}" == line, (score, line)
PY

# refuses CODE TEXT WORD...: hetseq bleu ends so.
refuses() {
  local code=$1 text=$2; shift 2
  rc=0; "$bin/hetseq" bleu "$@" <hypotheses >"$work/log" 2>&1 || rc=$?
  expect_error "$code" "$text"
}
head -n 3 reference2 >short
printf 'ein\ncaf\xe9\n' >latin1
lines=$(wc -l <hypotheses)
refuses 64 'REFERENCE is missing'
refuses 66 'cannot read none' none
refuses 65 '. is not a file' .
refuses 65 "short and standard input do not fit together (they have 3 and $lines lines)" reference1 short
refuses 65 'latin1 line 2 is not UTF-8 (byte 4 of the line' latin1
refuses 65 'latin1 line 2 is not UTF-8' reference1 --input latin1
refuses 78 "--tokenize: '13b' is not one of 13a, none, intl, char" reference1 --tokenize 13b
refuses 78 '--smooth-value has no effect (--smooth-method is exp)' reference1 --smooth-value 1
refuses 78 '--smooth-value: ' reference1 --smooth-method floor --smooth-value -1
refuses 78 "--metrics: there is no 'ter'" reference1 --metrics ter
refuses 78 '--sentence-level takes one metric' reference1 --metrics bleu,chrf --sentence-level
refuses 78 '--score-only and --json exclude each other' reference1 --score-only --json
: >empty
refuses 65 'empty holds no translations' empty --input empty

for ((i = 0; i < 100; i++)); do echo 'Das ist ein Haus .'; done >tokenized
"$bin/hetseq" bleu tokenized --input tokenized >printed 2>log
grep -q '100 translations end in' log || fail 'no word of tokenized translations'
"$bin/hetseq" bleu tokenized --tokenize none --input tokenized 2>log | grep -q ' = 100.0 100.0/100.0/100.0/100.0 (BP = 1.000' || fail 'equal texts'
[[ ! -s log ]] || fail 'a warning that is not asked for'
