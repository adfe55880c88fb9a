#!/usr/bin/env bash
# Strong or weak scaling of a configuration: one short run for each number of ranks (or host list), then a table and a plot.
# Submit it as a job over the largest number of nodes; every run starts on the first of them.
set -euo pipefail
source "$(dirname "$0")/../common.sh"

usage='usage: jobs/scaling/run.sh strong|weak CONFIG.cfg OUTPUT NP... [-- OPTION...]
  strong   the same global batch for every NP (that of the first run, unless --batch-size is among the options)
  weak     the batch of the first run times NP / first NP
  NP       a number of ranks, or a list for mpirun: host1:4,host2:2
  OPTION   of hetseq train, for example --max-update 100 --data ...
environment:
  HETSEQ   the program (default build/cpu/bin/hetseq, or hetseq on PATH)
  MPIRUN   the launcher (default mpirun)'
[[ ${1-} != -h && ${1-} != --help ]] || { echo "$usage"; exit 0; }
[[ $# -ge 4 && $1 =~ ^(strong|weak)$ ]] || { echo "$usage" >&2; exit 64; }
mode=$1 config=$2 output=$3
shift 3
runs=() options=()
while (($#)) && [[ $1 != -- ]]; do runs+=("$1"); shift; done
[[ ${1-} != -- ]] || { shift; options=("$@"); }

hetseq=${HETSEQ:-$([[ -x build/cpu/bin/hetseq ]] && echo build/cpu/bin/hetseq || echo hetseq)}
mpirun=${MPIRUN:-mpirun}
allow_ranks 1

# ranks_of NP: 6 for 6 and for host1:4,host2:2.
ranks_of() {
  local entry sum=0
  [[ ! $1 =~ ^[0-9]+$ ]] || { echo "$1"; return; }
  for entry in ${1//,/ }; do
    [[ $entry == *:* ]] && sum=$((sum + ${entry##*:})) || sum=$((sum + 1))
  done
  echo "$sum"
}
# setting RUN NAME: its effective value.
setting() { sed -n "s/^$2 = //p" "$output/$1/config.cfg"; }

first=${runs[0]//[:,]/-}
for run in "${runs[@]}"; do
  name=${run//[:,]/-}
  launch=(-np "$(ranks_of "$run")")
  [[ $run =~ ^[0-9]+$ ]] || launch+=(--host "$run")
  batch=()
  if [[ $name != "$first" ]]; then
    size=$(setting "$first" batch-size)
    [[ $mode == strong ]] || size=$((size * $(ranks_of "$run") / $(ranks_of "${runs[0]}")))
    batch=(--batch-size "$size" --update-freq 1)
  fi
  say "$mode scaling, $run: $output/$name"
  "$mpirun" "${launch[@]}" "$hetseq" train "$config" "${options[@]}" "${batch[@]}" --save-dir "$output/$name" --overwrite
done
python3 "$(dirname "$0")/table.py" "$output" "${runs[@]//[:,]/-}"
