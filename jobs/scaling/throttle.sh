#!/usr/bin/env bash
# A host that slows down while it trains and recovers: two virtual hosts of one core, the second throttled to 0.3 at update
# 40 and released at 120. Prints the rate of each stretch, 30 updates after its change, against the sum of what the hosts
# reach alone and what the ranks' own rates then allow, how near the cut itself is to that, and every allocation. Needs
# root, iproute2, and a machine that is otherwise idle.
set -euo pipefail

usage='usage: jobs/scaling/throttle.sh [BATCH]     (MNIST; default 2048)'
[[ ${1-} != -h && ${1-} != --help ]] || { echo "$usage"; exit 0; }
batch=${1:-2048}
task=mnist
quotas=(1.0 1.0)
throttled=0.3
work=$(mktemp -d)
source "$(dirname "$0")/virtual_hosts.sh"
results=build/scaling/throttle-$batch

# rate_alone QUOTA: of a host with that quota.
rate_alone() {
  "$vcluster" cpu h2 "$1"
  train_alone h2 --batch-size "$(awk -v b="$batch" -v q="$1" 'BEGIN {printf "%d", b * q / (1 + q)}')" --max-update 25 \
    --save-dir "$results/alone-$1"
  rate_of "$results/alone-$1"
}
# wait_for UPDATE: until that update is over.
wait_for() { until grep -q "\"kind\":\"train\",\"update\":$1," "$results/run/metrics.jsonl" 2>/dev/null; do sleep 0.1; done; }

virtual_hosts_set_up
rm -rf "$results"
mkdir -p "$results"
whole=$(rate_alone 1.0)
part=$(rate_alone $throttled)
"$vcluster" cpu h2 1.0
say "batch $batch, hosts of 1.0 and 1.0 cores; alone $whole samples/s, at $throttled cores $part"
train_on_hosts --batch-size "$batch" --max-update 190 --save-dir "$results/run" &
training=$!
wait_for 40
"$vcluster" cpu h2 $throttled
wait_for 120
"$vcluster" cpu h2 1.0
wait $training
stretch() { # NAME FIRST LAST SUM_OF_RATES
  local optimum cut
  read -r optimum cut < <(allowed_by_rates "$results/run" "$2" "$3")
  awk -v name="$1 (updates $2 to $3)" -v a="$(rate_of "$results/run" "$2" "$3")" -v o="$optimum" -v c="$cut" -v b="$4" 'BEGIN {
    printf "%s: %.1f samples/s, %.1f %% of the hosts alone (%.1f), %.1f %% of what the ranks'"'"' own rates allow (%.1f);", name,
      a, 100 * a / b, b, 100 * a / o, o
    printf " the cut reaches %.1f %% of that\n", 100 * c / o }'
}
stretch 'before' 10 40 "$(awk -v a="$whole" 'BEGIN {print 2 * a}')"
stretch 'throttled, 30 updates later' 71 120 "$(awk -v a="$whole" -v b="$part" 'BEGIN {print a + b}')"
stretch 'released, 30 updates later' 151 190 "$(awk -v a="$whole" 'BEGIN {print 2 * a}')"
cat "$results/run/allocations.json"
