#!/usr/bin/env bash
# How fast ragged gzip shards are read, against rows of one shape with the same values, gzip level and chunks: pairs of
# `hetseq bench data` in alternating order. Then how long it takes to open corpora of many samples, whose offsets are all
# read at the start. Writes about 3 GB under build/, removed at the end.
set -euo pipefail
shopt -s inherit_errexit
source "$(dirname "$0")/../common.sh"

usage='usage: jobs/scaling/reading.sh [SAMPLES]     (of the corpora that are read; default 2000000)
environment:
  PAIRS     for each number of ranks (default 7)
  RANKS     numbers of ranks (default: 1 2)
  OFFSETS   samples of the corpora that are only opened (default 100000000)'
[[ ${1-} != -h && ${1-} != --help ]] || { echo "$usage"; exit 0; }
samples=${1:-2000000}
pairs=${PAIRS:-7}
read -ra all_ranks <<<"${RANKS:-1 2}"
offsets=${OFFSETS:-100000000}
[[ $samples$pairs${all_ranks[*]}$offsets =~ ^[0-9\ ]+$ ]] || { echo "$usage" >&2; exit 64; }
program=build/cpu/bin/reading_corpora
results=build/scaling/reading
corpora=$results/corpora
trap 'rm -rf "$corpora"' EXIT
export OMP_NUM_THREADS=1

# room_for BYTES: stops where the disk has less.
room_for() {
  local free
  free=$(df --output=avail -B1 build | tail -1)
  ((free > $1)) || { echo "build/ needs $1 bytes, its disk has $free: give less samples" >&2; exit 74; }
}
# read_corpus KIND RANKS PAIR: a batch is 256 samples a rank, and one micro-batch for each.
read_corpus() {
  local options=(--batch-size $((256 * $2)) --max-sentences 256)
  [[ $1 != ragged ]] || options+=(--max-tokens 64000)
  mpirun -np "$2" "$program" bench data --task "$1" --data "$corpora/$1" "${options[@]}" >"$results/$1-$2-$3.json" \
    2>"$results/log" || { cat "$results/log" >&2; return 1; }
}

jobs/setup.sh
configure_and_build cpu reading_corpora
allow_ranks 2
rm -rf "$results"
mkdir -p "$corpora"
room_for $((samples * 500 + offsets * 25))
say "$samples samples of two fields in 4 shards"
"$program" write "$corpora" "$samples" 4
for ranks in "${all_ranks[@]}"; do
  for ((pair = 1; pair <= pairs; ++pair)); do
    kinds=(ragged fixed)
    ((pair % 2)) || kinds=(fixed ragged)
    for kind in "${kinds[@]}"; do read_corpus "$kind" "$ranks" "$pair"; done
  done
  python3 - "$results" "$ranks" "$pairs" <<'PY'
import json, statistics, sys
folder, ranks, pairs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])

def read(kind, pair):
    return json.load(open(f"{folder}/{kind}-{ranks}-{pair}.json"))

# Wall and processor time [s] of one epoch for each GB.
def costs(run, what):
    per_gb = 1e9 / run["bytes"]
    return run["samples"] / (run[what + "_per_second_and_rank"] * ranks) * per_gb, run[what + "_cpu_s"] * per_gb

def middle(values, form):
    values = sorted(values)
    low, _, high = statistics.quantiles(values, n=4) if len(values) > 1 else values * 3
    return f"{form % statistics.median(values)} ({form % low} and {form % high}; {form % values[0]} to {form % values[-1]})"

runs = [(read("ragged", pair), read("fixed", pair)) for pair in range(1, pairs + 1)]
print("| from | ranks | ragged [MB/s] | fixed [MB/s] | ragged / fixed, by wall time | by processor time |")
for what, name in ("read", "files"), ("cached", "cache"):
    both = [(costs(ragged, what), costs(fixed, what)) for ragged, fixed in runs]
    print(f"| {name} | {ranks} | {middle([1000 / r[0] for r, _ in both], '%.0f')} | "
          f"{middle([1000 / f[0] for _, f in both], '%.0f')} | {middle([f[0] / r[0] for r, f in both], '%.3f')} | "
          f"{middle([f[1] / r[1] for r, f in both], '%.3f')} |")
PY
done
echo '(Medians; in parentheses quartiles and range; ratios within each pair.)'
rm -rf "${corpora:?}"/*
for kind in contiguous gzip; do
  say "opening a corpus of $offsets samples, offsets $kind"
  "$program" write-offsets "$corpora/$kind.h5" "$offsets" "$kind"
  for ranks in "${all_ranks[@]}"; do
    for _ in 1 2 3; do mpirun -np "$ranks" "$program" open "$corpora/$kind.h5"; done
  done
  rm "$corpora/$kind.h5"
done
