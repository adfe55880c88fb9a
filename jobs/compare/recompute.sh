#!/usr/bin/env bash
# What recomputing layers costs and saves on one rank, in rounds: time of an update's compute, and peak memory.
set -euo pipefail
shopt -s inherit_errexit

usage='usage: jobs/compare/recompute.sh DATA
DATA: shards for the task
environment:
  HETSEQ   the program (build/cpu/bin/hetseq)
  TASK     what is trained (--task bert --model-config base)
  LAYERS   values of --recompute (0 6 12)
  BATCH    samples of an update, one micro-batch (16)
  UPDATES  of a run (4)
  ROUNDS   of all runs (3)'
(($# == 1)) || { echo "$usage" >&2; exit 64; }
read -ra layers <<<"${LAYERS:-0 6 12}"
read -ra task <<<"${TASK:---task bert --model-config base}"
output=$(mktemp -d)
trap 'rm -rf "$output"' EXIT
for ((round = 0; round < ${ROUNDS:-3}; ++round)); do
  for count in "${layers[@]}"; do
    "${HETSEQ:-build/cpu/bin/hetseq}" train "${task[@]}" --data "$1" --batch-size "${BATCH:-16}" \
      --max-sentences "${BATCH:-16}" --max-update "${UPDATES:-4}" --recompute "$count" --balance declared --cache-dir none \
      --json >"$output/$count-$round.json" 2>"$output/log" || { cat "$output/log" >&2; exit 1; }
  done
done
python3 - "$output" "${layers[@]}" <<'PY'
import json, pathlib, statistics, sys
folder, layers = pathlib.Path(sys.argv[1]), sys.argv[2:]
found = {}
for path in folder.glob("*.json"):
    text = path.read_text()
    rank = json.loads(text[text.index("{"):])["ranks"][0]
    found.setdefault(path.stem.split("-")[0], []).append((rank["compute_ms"], rank["peak_memory_mb"]))
first = statistics.median(ms for ms, _ in found[layers[0]])
print("| layers recomputed | compute, ms an update | of none's | peak memory, MiB |\n|---|---|---|---|")
for count in layers:
    times, memory = zip(*found[count])
    print(f"| {count} | {statistics.median(times):,.0f} ({min(times):,.0f} to {max(times):,.0f}) | "
          f"{statistics.median(times) / first:.2f} | {statistics.median(memory):,.0f} |")
PY
