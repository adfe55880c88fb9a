#!/usr/bin/env bash
# How well `hetseq plan --from RUN` predicts other host lists and batches: virtual hosts of 0.6 and 0.2 cores, one rank
# each, --balance auto. In rounds, since the speed of a shared machine drifts: in each the jobs run one after the other,
# and the first one's run predicts all of them. Needs root, iproute2, and a machine that is otherwise idle.
set -euo pipefail
shopt -s inherit_errexit

usage='usage: jobs/scaling/prediction.sh [mnist|bert] [BATCH]     (default: mnist 512)
environment:
  HETSEQ_TEST_DATA   folder with bert/*.hdf5 (default ../shared/data)
  ROUNDS             default 3
  UPDATES            of each run, besides its first 10 (default 20)'
[[ ${1-} != -h && ${1-} != --help ]] || { echo "$usage"; exit 0; }
task=${1:-mnist}
batch=${2:-512}
rounds=${ROUNDS:-3}
updates=${UPDATES:-20}
[[ $task =~ ^(mnist|bert)$ && $batch$updates$rounds =~ ^[0-9]+$ ]] || { echo "$usage" >&2; exit 64; }
quotas=(0.6 0.2 0.2 0.6)
work=$(mktemp -d)
source "$(dirname "$0")/virtual_hosts.sh"
results=build/scaling/prediction-$task-$batch
# Hosts, batch, and what is planned for it: numbers of nodes like h1 and like h2.
jobs=("h1,h2 $batch 1 1" "h1,h2 $((2 * batch)) 1 1" "h1,h2 $((batch / 2)) 1 1" "h1,h2,h3 $batch 1 2" "h1,h4 $batch 2 0"
  "h1,h2,h3,h4 $((2 * batch)) 2 2")

# train RUN HOSTS BATCH: its median update [ms].
train() {
  local hosts specs=() host
  IFS=, read -ra hosts <<<"$2"
  for host in "${hosts[@]}"; do specs+=("$host:cpu=${quotas[${host#h} - 1]},slots=1"); done
  "$vcluster" down
  "$vcluster" up "${specs[@]}"
  "$vcluster" run -np "${#hosts[@]}" -x OMP_NUM_THREADS=1 "$hetseq" train "${options[@]}" --batch-size "$3" \
    --max-update $((updates + 10)) --save-interval 0 --save-minutes 0 --save-dir "$1" >"$work/log" 2>&1 || { cat "$work/log" >&2; return 1; }
  awk -v b="$3" -v r="$(rate_of "$1" 11 $((updates + 10)))" 'BEGIN {print 1000 * b / r}'
}
# predicted RUN BATCH LIKE_H1 LIKE_H2: the planner's update [ms].
predicted() {
  printf '[nodes h1]\ncount = %s\n[nodes h2]\ncount = %s\n[job]\nbatch = %s\n' "$3" "$4" "$2" >"$work/cluster.cfg"
  "$hetseq" plan "$work/cluster.cfg" --from "$1" --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["step_ms"])'
}

virtual_hosts_set_up
rm -rf "$results"
mkdir -p "$results"
say "$task, hosts of ${quotas[*]} cores, $rounds rounds of $updates updates a job"
for ((round = 1; round <= rounds; ++round)); do
  for i in "${!jobs[@]}"; do
    read -r hosts size like_h1 like_h2 <<<"${jobs[i]}"
    measured=$(train "$results/$i-$round" "$hosts" "$size")
    plan=$(predicted "$results/0-$round" "$size" "$like_h1" "$like_h2")
    printf '%s\t%s\t%s\t%s\t%s\n' "$round" "$hosts" "$size" "$measured" "$plan" | tee -a "$results/times.tsv"
  done
done
python3 - "$results/times.tsv" <<'PY'
import csv, statistics, sys
jobs = {}
for _, hosts, batch, measured, plan in csv.reader(open(sys.argv[1]), delimiter="\t"):
    jobs.setdefault((hosts, batch), []).append((float(measured), float(plan)))
print("| hosts | batch | measured [ms] | predicted [ms] | error |")
for (hosts, batch), times in jobs.items():
    errors = [100 * (plan / measured - 1) for measured, plan in times]
    print(f"| {hosts} | {batch} | {statistics.median(m for m, _ in times):.1f} | {statistics.median(p for _, p in times):.1f} | "
          f"{statistics.median(errors):+.1f} % ({min(errors):+.1f} to {max(errors):+.1f}) |")
PY
echo '(medians and range of the rounds; the first row is the run that the others are predicted from)'
