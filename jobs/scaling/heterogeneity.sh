#!/usr/bin/env bash
# Unlike hosts on one machine: how fast --balance auto and equal train on virtual hosts with CPU quotas, against the sum
# of what the hosts reach each for itself. In rounds, since the speed of a shared machine drifts: each host alone, then
# auto, then equal, both continued where the round before left them. GPT-2 also trains under PyTorch's DDP. Needs root,
# iproute2, and a machine that is otherwise idle.
set -euo pipefail
shopt -s inherit_errexit

usage='usage: jobs/scaling/heterogeneity.sh [mnist|bert|pairs|translation|gpt2|resnet] [BATCH] [QUOTA...]
  default: mnist 2048 1.0 0.25   (quotas: cores of each host; their sum must fit the machine)
  pairs        sentences of unequal length, generated; BATCH in target tokens
  translation  Multi30k and a tiny Transformer; BATCH in target tokens
  gpt2         the novels and a small GPT-2 of transformers, a task in Python
  resnet       Fashion-MNIST and a ResNet-18 of transformers, a task in Python; batch normalisation by groups of 32
environment:
  HETSEQ_TEST_DATA   folder with bert/*.hdf5, multi30k/*.gz and text/novels-small.txt (default ../shared/data)
  ROUNDS             default 3
  UPDATES            of each run in each round, besides its first two, which do not count (default 7)
  POLICIES           of auto, equal and, for gpt2, ddp (default: all)'
[[ ${1-} != -h && ${1-} != --help ]] || { echo "$usage"; exit 0; }
task=${1:-mnist}
batch=${2:-2048}
quotas=("${@:3}")
((${#quotas[@]})) || quotas=(1.0 0.25)
rounds=${ROUNDS:-3}
updates=${UPDATES:-7}
every='auto equal'
[[ $task != gpt2 ]] || every+=' ddp'
read -ra policies <<<"${POLICIES:-$every}"
[[ $task =~ ^(mnist|bert|pairs|translation|gpt2|resnet)$ && $batch$updates$rounds =~ ^[0-9]+$ ]] || { echo "$usage" >&2; exit 64; }
total=$(printf '%s\n' "${quotas[@]}" | awk '{t += $1} END {print t}')
work=$(mktemp -d)
source "$(dirname "$0")/virtual_hosts.sh"
awk -v t="$total" -v n="$(core_count)" 'BEGIN {exit !(t > 0 && t <= n)}' ||
  { echo "the quotas ${quotas[*]} need $total cores, this machine has $(core_count)" >&2; exit 64; }
results=build/scaling/$task-$batch-$(IFS=-; echo "${quotas[*]}")
length=$((updates + 2))
mapfile -t hosts < <(seq ${#quotas[@]})

size=--batch-size
[[ ! $task =~ ^(pairs|translation)$ ]] || size=--batch-tokens

# part_of QUOTA: that host's part of the batch.
part_of() { awk -v b="$batch" -v q="$1" -v t="$total" 'BEGIN {printf "%d", b * q / t + 0.5}'; }
# alone NUMBER: host hNUMBER trains its part of the batch for itself; its rate.
alone() {
  train_alone "h$1" "$size" "$(part_of "${quotas[$1 - 1]}")" --max-update "$length" \
    --save-dir "$results/alone-$1-$round"
  rate_of "$results/alone-$1-$round" 3 "$length"
}
# together POLICY: all hosts; the rate in this round.
together() {
  train_on_hosts "$size" "$batch" --balance "$1" --max-update $((round * length)) --save-interval 0 --save-minutes 0 \
    --save-dir "$results/$1"
  rate_of "$results/$1" $(((round - 1) * length + 3)) $((round * length))
}

# under_ddp: all hosts, the same model and data under DistributedDataParallel, which gives each rank as much.
under_ddp() {
  "$vcluster" run -np "${#quotas[@]}" -x OMP_NUM_THREADS=1 -x MASTER_ADDR="$(first_address)" -x GLOO_SOCKET_IFNAME=eth0 \
    "$HETSEQ_PYTHON" jobs/compare/gpt2_ddp.py "${options[2]}" --tuned --batch $((batch / ${#quotas[@]})) --updates "$length" \
    2>"$work/ddp.log" >"$work/ddp.json" || { cat "$work/ddp.log" >&2; return 1; }
  python3 -c 'import json, sys; print(json.load(sys.stdin)["samples_per_second"]["median"])' <"$work/ddp.json"
}

virtual_hosts_set_up
rm -rf "$results"
mkdir -p "$results"
say "$task, global batch $batch, hosts of ${quotas[*]} cores, $rounds rounds of $updates updates"
tabbed() { (IFS=$'\t'; echo "$*") | tee -a "$results/rates.tsv"; }
tabbed round "${hosts[@]/#/h}" "${policies[@]}"
for ((round = 1; round <= rounds; ++round)); do
  rates=("$round")
  for i in "${hosts[@]}"; do
    rate=$(alone "$i")
    rates+=("$rate")
  done
  for policy in "${policies[@]}"; do
    if [[ $policy == ddp ]]; then rate=$(under_ddp); else rate=$(together "$policy"); fi
    rates+=("$rate")
  done
  tabbed "${rates[@]}"
done
round=at-once
started=()
for i in "${hosts[@]}"; do
  alone "$i" >"$work/at-once-$i" &
  started+=($!)
done
for process in "${started[@]}"; do wait "$process"; done
python3 - "$results/rates.tsv" "| $task | $batch | ${quotas[*]} " "$work"/at-once-* <<'PY'
import csv, statistics, sys
rounds = list(csv.DictReader(open(sys.argv[1]), delimiter="\t"))
column = lambda name: [float(row[name]) for row in rounds if name in row]
alone = [sum(float(rate) for name, rate in row.items() if name.startswith("h")) for row in rounds]
auto, equal = column("auto"), column("equal")
at_once = sum(float(open(path).read()) for path in sys.argv[3:])

def middle(values):
    return f"{statistics.median(values):.1f}" if values else ""

def ratios(above, below, form, factor=1):
    values = [factor * a / b for a, b in zip(above, below)]
    return f"{form % statistics.median(values)} ({form % min(values)} to {form % max(values)})" if values else ""

print(f"{sys.argv[2]}| {middle(equal)} | {middle(auto)} | {ratios(auto, equal, '%.2f')} | {middle(alone)} | "
      f"{ratios(auto, alone, '%.1f', 100)} |")
if column("ddp"):
    ddp = column("ddp")
    print(f"PyTorch's DDP, tuned, equal shares: {middle(ddp)}; auto / DDP {ratios(auto, ddp, '%.2f')}; "
          f"DDP as a percentage of alone {ratios(ddp, alone, '%.1f', 100)}")
print(f"All at once, each for itself, the hosts reach {at_once:.1f}: {100 * at_once / statistics.median(alone):.1f} % of alone.")
PY
echo '(task, batch, cores; samples or target tokens a second: equal, auto; auto / equal; the sum of the hosts alone; auto as a percentage of'
echo ' it. Medians and range of the rounds, ratios within each.)'
