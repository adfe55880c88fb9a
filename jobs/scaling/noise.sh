#!/usr/bin/env bash
# What --balance auto costs two like ranks on a machine that another job disturbs: pairs of short runs, auto and equal in
# alternating order, beside a process that takes a core for 0.1 to 5 s, half of the time, at the same moments in both. Every
# run starts anew, so that speeds are measured beside that process too. Needs a machine that is otherwise idle, and 2 cores.
set -euo pipefail
shopt -s inherit_errexit
source "$(dirname "$0")/../common.sh"

usage='usage: jobs/scaling/noise.sh [BATCH...]     (MNIST; default: 64 128)
environment:
  PAIRS     for each batch (default 12)
  UPDATES   of each run, besides its first two, which do not count (default 400)'
[[ ${1-} != -h && ${1-} != --help ]] || { echo "$usage"; exit 0; }
batches=("$@")
((${#batches[@]})) || batches=(64 128)
pairs=${PAIRS:-12}
updates=${UPDATES:-400}
[[ ${batches[*]}$pairs$updates =~ ^[0-9\ ]+$ ]] || { echo "$usage" >&2; exit 64; }
hetseq=build/cpu/bin/hetseq
results=build/scaling/noise
work=$(mktemp -d)
neighbour=
trap 'kill $neighbour 2>/dev/null || true; rm -rf "$work"' EXIT
export OMP_NUM_THREADS=1

# start_neighbour SEED: a busy process for 0.1 to 5 s, as long asleep, and so on.
start_neighbour() {
  python3 - "$1" <<'PY' &
import random, sys, time
draw = random.Random(int(sys.argv[1]))
while True:
    end = time.monotonic() + draw.uniform(0.1, 5)
    while time.monotonic() < end:
        pass
    time.sleep(draw.uniform(0.1, 5))
PY
  neighbour=$!
}
# train POLICY BATCH PAIR: a run beside the neighbour.
train() {
  local run=$results/$2/$1-$3
  start_neighbour "$3"
  mpirun -np 2 "$hetseq" train --task mnist --data 'data/fashion-mnist/train*.h5' --threads 1 --batch-size "$2" \
    --max-sentences $(($2 / 2)) --balance "$1" --max-update $((updates + 2)) --save-interval 0 --save-minutes 0 --log-interval 1 \
    --cache-dir none --save-dir "$run" >"$work/log" 2>&1 || { cat "$work/log" >&2; return 1; }
  kill "$neighbour"
  wait "$neighbour" 2>/dev/null || true
}

jobs/setup.sh
configure_and_build cpu hetseq
prepare_fashion_mnist
allow_ranks 2
rm -rf "$results"
for batch in "${batches[@]}"; do
  mkdir -p "$results/$batch"
  say "batch $batch, $pairs pairs of $updates updates"
  for ((pair = 1; pair <= pairs; ++pair)); do
    policies=(auto equal)
    ((pair % 2)) || policies=(equal auto)
    for policy in "${policies[@]}"; do train "$policy" "$batch" "$pair"; done
  done
  python3 - "$results/$batch" "$batch" "$pairs" <<'PY'
import json, statistics, sys
folder, batch, pairs = sys.argv[1], sys.argv[2], int(sys.argv[3])

def read(policy, pair):
    lines = map(json.loads, open(f"{folder}/{policy}-{pair}/metrics.jsonl"))
    updates = [line for line in lines if line["kind"] == "train"]
    counted = updates[2:]
    rate = 1000 * sum(line["samples"] for line in counted) / sum(line["step_ms"] for line in counted)
    full = [line["allocation"] for line in updates if line["samples"] == updates[0]["samples"]]
    return rate, sum(a != b for a, b in zip(full, full[1:]))

rows = [(*read("auto", pair), read("equal", pair)[0]) for pair in range(1, pairs + 1)]
for pair, (auto, cuts, equal) in enumerate(rows, 1):
    print(f"pair {pair}: auto {auto:.0f}, equal {equal:.0f} samples/s, ratio {auto / equal:.3f}, new cuts {cuts}")
ratios = [auto / equal for auto, _, equal in rows]
low, _, high = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
cuts = [cuts for _, cuts, _ in rows]
print(f"batch {batch}: auto / equal {statistics.median(ratios):.3f} (quartiles {low:.3f} and {high:.3f}, "
      f"{min(ratios):.3f} to {max(ratios):.3f}); new cuts a run: {statistics.mean(cuts):.2f}, at most {max(cuts)}")
PY
done
