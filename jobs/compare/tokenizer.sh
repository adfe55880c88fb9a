#!/usr/bin/env bash
# hetseq tokenize against Hugging Face's tokenizers, and against Google's program, on this machine.
set -euo pipefail
source "$(dirname "$0")/../common.sh"

usage='usage: jobs/compare/tokenizer.sh [ids|speed|all] [MEGABYTES] [ROUNDS]     (default: all 2 5)
  ids     every character between letters, and MEGABYTES of each kind of generated text: counts the lines whose ids
          differ from those of the two programs
  speed   megabytes of text a second of CPU time, of real text on one core, in turns, ROUNDS times
environment:
  HETSEQ_TEST_DATA   folder with bert/vocab.txt, text/ and multi30k/ (default ../shared/data)'
[[ ${1-} != -h && ${1-} != --help ]] || { echo "$usage"; exit 0; }
what=${1:-all}
megabytes=${2:-2}
rounds=${3:-5}
[[ $what =~ ^(ids|speed|all)$ && $megabytes =~ ^[1-9][0-9]*$ && $rounds =~ ^[1-9][0-9]*$ ]] ||
  { echo "$usage" >&2; exit 64; }
data=$(realpath -m "${HETSEQ_TEST_DATA:-../shared/data}")
[[ -e $data/bert/vocab.txt ]] || { echo "no bert/vocab.txt in HETSEQ_TEST_DATA ($data): it is needed" >&2; exit 66; }

python=build/tokenizers/bin/python
jobs/setup.sh
configure_and_build cpu hetseq
if [[ ! -e build/tokenizers/complete ]]; then
  say 'installing tokenizers and the program of BERT into build/tokenizers'
  python3 -m venv build/tokenizers || { echo 'install python3-venv' >&2; exit 69; }
  "$python" -m pip install --quiet 'tokenizers==0.23.*' six
  "$python" -m pip install --quiet --no-deps bert-tensorflow==1.0.4
  touch build/tokenizers/complete
fi
for part in ids speed; do
  [[ $what != all && $what != "$part" ]] ||
    "$python" jobs/compare/tokenizer.py "$part" build/cpu/bin/hetseq "$data" "$megabytes" "$rounds"
done
