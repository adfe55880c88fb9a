#!/usr/bin/env bash
# Unlike hosts on one machine: how fast --balance auto and equal train on virtual hosts with CPU quotas, against the sum
# of what the hosts reach each for itself: one after the other, and all at once, since the cores of one machine share
# caches and memory. Needs root, iproute2, and a machine that is otherwise idle.
set -euo pipefail

usage='usage: jobs/scaling/heterogeneity.sh [mnist|bert] [BATCH] [UPDATES] [QUOTA...]
  default: mnist 2048 30 1.0 0.25   (quotas: cores of each host; their sum must fit the machine)
environment:
  HETSEQ_TEST_DATA   folder with bert/*.hdf5 (default ../shared/data)
  ROUNDS             repetitions, equal and auto in turns (default 1)
  ALONE_UPDATES      updates of each host for itself (default 25)'
[[ ${1-} != -h && ${1-} != --help ]] || { echo "$usage"; exit 0; }
task=${1:-mnist}
batch=${2:-2048}
updates=${3:-30}
quotas=("${@:4}")
((${#quotas[@]})) || quotas=(1.0 0.25)
rounds=${ROUNDS:-1}
alone_updates=${ALONE_UPDATES:-25}
[[ $task =~ ^(mnist|bert)$ && $batch$updates$rounds =~ ^[0-9]+$ ]] || { echo "$usage" >&2; exit 64; }
work=$(mktemp -d)
source "$(dirname "$0")/virtual_hosts.sh"
results=build/scaling/$task-$batch-$(IFS=-; echo "${quotas[*]}")

sum() { awk '{t += $1} END {print t}'; }
# part_of QUOTA: that host's part of the batch.
part_of() { awk -v b="$batch" -v q="$1" -v t="$total" 'BEGIN {printf "%d", b * q / t + 0.5}'; }

virtual_hosts_set_up
mkdir -p "$results"
say "$task, global batch $batch, hosts of ${quotas[*]} cores, $updates updates"
total=$(printf '%s\n' "${quotas[@]}" | sum)
# alone NUMBER NAME: host hNUMBER trains its part of the batch for itself, into RESULTS/NAME-NUMBER.
alone() {
  train_alone "h$1" --batch-size "$(part_of "${quotas[$1 - 1]}")" --max-update "$alone_updates" --save-dir "$results/$2-$1"
}
hosts=$(seq ${#quotas[@]})
for i in $hosts; do alone "$i" alone; done
for i in $hosts; do alone "$i" at-once & done
wait
for i in $hosts; do
  echo "h$i (${quotas[i - 1]} cores) for itself: $(rate_of "$results/alone-$i") samples/s, with the others at work" \
    "$(rate_of "$results/at-once-$i")"
done
bound=$(for i in $hosts; do rate_of "$results/alone-$i"; done | sum)
at_once=$(for i in $hosts; do rate_of "$results/at-once-$i"; done | sum)
for ((round = 1; round <= rounds; ++round)); do
  for balance in equal auto; do
    train_on_hosts --batch-size "$batch" --max-update "$updates" --balance "$balance" --save-dir "$results/$balance-$round"
  done
  awk -v e="$(rate_of "$results/equal-$round")" -v a="$(rate_of "$results/auto-$round")" -v b="$bound" -v o="$at_once" \
    -v head="| $task | $batch | ${quotas[*]}" 'BEGIN {
    printf "%s | %.1f | %.1f | %.2f | %.1f, %.1f %% | %.1f, %.1f %% |\n", head, e, a, a / e, b, 100 * a / b, o, 100 * a / o }'
done
echo '(task, batch, cores; samples a second: equal, auto; auto / equal; sum of the hosts one after the other, and what part'
echo ' of it auto reaches; the same of the hosts all at once)'
