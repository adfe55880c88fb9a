#!/usr/bin/env bash
# hetseq prepare bert beside google-research's own create_pretraining_data.py: the distributions of what they make, and
# their speed. Google's program runs as it is, with stand-ins for TensorFlow 1 and without its writer. Prints Markdown.
set -euo pipefail
start=$PWD
source "$(dirname "$0")/../common.sh"

usage='usage: jobs/compare/generator.sh GOOGLE_BERT [distributions|speed|all [RUNS [MEGABYTES [ROUNDS]]]]
                                                                                  (default: all 40 4 3)
GOOGLE_BERT is a clone of https://github.com/google-research/bert.
  distributions   of the small novels, in 1 and 5 copies, each RUNS times with other seeds
  speed           CPU seconds for MEGABYTES of novels on one core, in 1 and 5 copies, in turns, ROUNDS times
Needs build/python (jobs/setup.sh --python).
environment:
  HETSEQ_TEST_DATA   folder with bert/vocab.txt and text/ (default ../shared/data)
  HETSEQ_PROGRAM     a hetseq that is built already (default: build/cpu/bin/hetseq, which is built first)'
[[ ${1-} != -h && ${1-} != --help ]] || { echo "$usage"; exit 0; }
what=${2:-all}
runs=${3:-40}
megabytes=${4:-4}
rounds=${5:-3}
[[ -n ${1-} && $# -le 5 && $what =~ ^(distributions|speed|all)$ && $runs =~ ^([2-9]|[1-9][0-9]+)$ &&
  $megabytes =~ ^[1-9][0-9]*$ && $rounds =~ ^[1-9][0-9]*$ ]] || { echo "$usage" >&2; exit 64; }

google=$(cd "$start" && realpath -m "$1")
[[ -e $google/create_pretraining_data.py && -e $google/tokenization.py ]] || {
  echo "$google holds no create_pretraining_data.py and tokenization.py:" >&2
  echo 'clone https://github.com/google-research/bert and name its folder' >&2
  exit 66
}
data=$(realpath -m "${HETSEQ_TEST_DATA:-../shared/data}")
[[ -e $data/bert/vocab.txt && -e $data/text/novels-small.txt && -e $data/text/novels.txt.xz ]] || {
  echo "$data lacks bert/vocab.txt, text/novels-small.txt or text/novels.txt.xz: set HETSEQ_TEST_DATA" >&2
  exit 66
}
need_built_python

program=${HETSEQ_PROGRAM-}
if [[ -z $program ]]; then
  configure_and_build cpu hetseq
  program=build/cpu/bin/hetseq
else
  program=$(cd "$start" && realpath -m "$program")
  [[ -x $program ]] || { echo "HETSEQ_PROGRAM: there is no $program" >&2; exit 66; }
fi
allow_ranks 1
compare() { "$python" jobs/compare/generator.py "$1" "$google" "$program" "$data" "${@:2}"; }
[[ $what == speed ]] || compare distributions "$runs"
[[ $what == distributions ]] || compare speed "$megabytes" "$rounds"
