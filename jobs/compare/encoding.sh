#!/usr/bin/env bash
# hetseq prepare translation beside SentencePiece's own encoder: the same text and model, one thread each, in turns.
# Prints sentences a second of CPU time of each, and the ratio. hetseq also checks, pairs, compresses and writes.
set -euo pipefail
source "$(dirname "$0")/../common.sh"

usage='usage: jobs/compare/encoding.sh [PAIRS [ROUNDS]]     (default: 300000 3)
Needs spm_encode (Debian: sentencepiece) of the SentencePiece that hetseq was built with.
environment:
  HETSEQ_TEST_DATA   folder with wmt-ende-10k/ (default ../shared/data), whose pairs are repeated'
[[ ${1-} != -h && ${1-} != --help ]] || { echo "$usage"; exit 0; }
pairs=${1:-300000}
rounds=${2:-3}
[[ $pairs =~ ^[1-9][0-9]*$ && $rounds =~ ^[1-9][0-9]*$ ]] || { echo "$usage" >&2; exit 64; }
command -v spm_encode >/dev/null || { echo 'spm_encode is missing: install sentencepiece' >&2; exit 69; }

hetseq=$PWD/build/cpu/bin/hetseq
corpus=$(realpath -m "${HETSEQ_TEST_DATA:-../shared/data}")/wmt-ende-10k
[[ -d $corpus ]] || { echo "no $corpus: name the folder above it by HETSEQ_TEST_DATA" >&2; exit 66; }
configure_and_build cpu hetseq
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# repeated FILE.gz LINES: its lines over and over.
repeated() {
  gzip -dc "$1" | awk -v wanted="$2" '{line[NR] = $0} END {for (i = 0; i < wanted; ++i) print line[i % NR + 1]}'
}
repeated "$corpus/src-train.txt.gz" "$pairs" >text.en
repeated "$corpus/tgt-train.txt.gz" "$pairs" >text.de

# cpu_seconds COMMAND...: user and system time together.
cpu_seconds() {
  local TIMEFORMAT='%U %S' seconds
  seconds=$({ time "$@" >output 2>&1; } 2>&1) || { cat output >&2; return 1; }
  awk -v seconds="$seconds" 'BEGIN {split(seconds, part, " "); print part[1] + part[2]}'
}
median() { sort -g | awk '{value[NR] = $1} END {print value[int((NR + 1) / 2)]}'; }

prepare() { "$hetseq" prepare translation --source-text "$1.en" --target-text "$1.de" --joined "${@:2}"; }
theirs() { spm_encode --model model.model --output_format id <text.en && spm_encode --model model.model --output_format id <text.de; }
ours() { prepare text --source-vocabulary model.model --output shards --shards 1; }

head -n 10000 text.en >sample.en
head -n 10000 text.de >sample.de
for type in bpe unigram; do
  rm -rf first
  prepare sample --model-type $type --vocab-size 16000 --output first >first.txt
  cp first/source.vocabulary model.model
  : >ours.txt
  : >theirs.txt
  for ((round = 1; round <= rounds; ++round)); do
    cpu_seconds ours >>ours.txt
    cpu_seconds theirs >>theirs.txt
  done
  awk -v type=$type -v sentences=$((2 * pairs)) -v ours="$(median <ours.txt)" -v theirs="$(median <theirs.txt)" 'BEGIN {
    printf "%s: hetseq %d sentences/s, spm_encode %d sentences/s, ratio %.2f\n", type, sentences / ours, sentences / theirs, theirs / ours}'
done
