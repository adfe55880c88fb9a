#!/usr/bin/env bash
# A run under jobs/local.sh, one rank of which is killed again and again: what share of the time went into updates that were
# kept, and where the rest went (docs/faults.md).
set -euo pipefail
shopt -s inherit_errexit

usage='usage: jobs/scaling/goodput.sh mnist | numbers | base
environment:
  HETSEQ   the program (build/cpu/bin/hetseq)
  EVERY    seconds between kills, on average (60); 0: none
  MINUTES  of the run (15)
  RANKS    (2)
  HOSTS    virtual hosts of one core (tests/cluster/vcluster; needs root) over which the ranks are spread; 0: none (0)
  SAVE     --save-minutes (auto)
base: a BERT base, whose checkpoint is 1.3 GB; needs data/bert-8192 (made here)'
[[ ${1-} != -h && ${1-} != --help ]] || { echo "$usage"; exit 0; }
[[ ${1-} =~ ^(mnist|numbers|base)$ && $# == 1 ]] || { echo "$usage" >&2; exit 64; }
source "$(dirname "$0")/../common.sh"
every=${EVERY:-60} minutes=${MINUTES:-15} ranks=${RANKS:-2} virtual=${HOSTS:-0}
if [[ ! $every$minutes$ranks$virtual =~ ^[0-9]+$ ]] || ((virtual && ranks % virtual)); then echo "$usage" >&2; exit 64; fi
hetseq=$(realpath "${HETSEQ:-build/cpu/bin/hetseq}")
[[ -x $hetseq ]] || { echo "there is no $hetseq: build it (docs/building.md), or name it in HETSEQ" >&2; exit 69; }
work=$PWD/build/scaling/goodput-$1
rm -rf "$work"
mkdir -p "$work"
case $1 in
  mnist)
    prepare_fashion_mnist
    task=(--task mnist --data "$PWD/data/fashion-mnist/train*.h5" --batch-size 256) ;;
  numbers)
    [[ -e data/numbers/test.de ]] || "$hetseq" prepare numbers --output data/numbers
    task=("$PWD/inputs/numbers.cfg" --data "$PWD/data/numbers/train*.h5") ;;
  base)
    prepare_bert_8192
    task=(--task bert --model-config base --data "$PWD/data/bert-8192/train*.h5" --batch-size 4) ;;
esac
allow_ranks "$ranks"
export OMP_NUM_THREADS=1
hosts=("localhost:$ranks") start=()
if ((virtual)); then
  vcluster=$PWD/tests/cluster/vcluster
  mapfile -t hosts < <(seq -f 'h%g' "$virtual")
  "$vcluster" down
  trap '"$vcluster" down' EXIT
  "$vcluster" up "${hosts[@]/%/:cpu=1,slots=$((ranks / virtual))}"
  hosts=("${hosts[@]/%/:$((ranks / virtual))}")
  mapfile -t settings < <("$vcluster" settings)
  start=("$vcluster" 'exec' h1 env "${settings[@]}")
fi
cat >"$work/settings" <<EOF
hosts=(${hosts[*]})
run=$work/run
command=(mpirun '$hetseq' train$(printf " '%s'" "${task[@]}") --max-update 100000000 --max-epoch 0 --threads 1
  --save-interval 0 --save-minutes ${SAVE:-auto} --save-dir '$work/run')
EOF
cp jobs/job.sh "$work"
cd "$work"
HETSEQ_JOB=settings setsid "${start[@]}" bash "$OLDPWD/jobs/local.sh" >log 2>&1 &
job=$!
trap 'kill -TERM "$job" 2>/dev/null || true; ((!virtual)) || "$vcluster" down' EXIT
kills=$(kill_now_and_then "$every" $((60 * minutes)) "$job" "$hetseq train .*--save-dir $work/run")
kill -TERM "$job" 2>/dev/null || true
wait "$job" || true
trap - EXIT
((!virtual)) || "$vcluster" down
python3 - "$kills" <<'PY'
import json, sys
told = json.load(open("run/summary.json"))["goodput"]
checkpoint = [start["checkpoint"] for start in json.load(open("run/starts.json"))["starts"] if "checkpoint" in start]
print(f"{sys.argv[1]} kills, {told['starts']} starts: {100 * told['share']:.1f} % of {told['seconds']:.0f} s in updates that were kept")
for name in ("lost", "starting", "between", "validating", "saving", "other"):
    print(f"{name:>10}: {100 * told[name + '_s'] / told['seconds']:.1f} %")
if checkpoint:
    cost, writing = checkpoint[-1]["training_s"], checkpoint[-1]["writing_s"]
    print(f"a checkpoint: {1000 * cost:.1f} ms of training, {1000 * writing:.0f} ms to be written")
    if told["starts"] > 1:  # the interval is that of docs/checkpoints.md
        between_failures, failures = 600, told["starts"] - 1
        interval = min(600, max(2, 5 * writing, (2 * cost * between_failures) ** 0.5))
        lost = interval / 2 + writing + told["starting_s"] / told["starts"] + told["between_s"] / failures
        share = 1 - lost / between_failures - cost / interval
        print(f"so with a failure every ten minutes, reckoned: {100 * share:.1f} %")
PY
