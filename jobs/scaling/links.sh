#!/usr/bin/env bash
# Gradients in fp32 and in bf16 on slow links: samples a second of two virtual hosts, and the bytes that a host sends in an
# update, in turns. Needs root, iproute2, and a machine that is otherwise idle.
set -euo pipefail
shopt -s inherit_errexit

usage='usage: jobs/scaling/links.sh TASK RATE...     (mnist, bert or translation; rates as 1gbit 100mbit)
environment:
  BATCH    (64; target tokens for a translation)
  UPDATES  of each run, the first three of which do not count (12)
  ROUNDS   (3)'
(($# >= 2)) || { echo "$usage" >&2; exit 64; }
task=$1 rates=("${@:2}")
batch=${BATCH:-64} updates=${UPDATES:-12} rounds=${ROUNDS:-3}
quotas=(1.0 1.0)
work=$(mktemp -d)
source "$(dirname "$0")/virtual_hosts.sh"
results=build/scaling/links-$task

# sent_by HOST: bytes since it is up.
sent_by() { "$vcluster" exec "$1" cat /proc/net/dev | awk -F '[: ]+' '/vc|eth/ {sum += $11} END {printf "%.0f\n", sum}'; }

virtual_hosts_set_up
rm -rf "$results"
mkdir -p "$results"
[[ $task == translation ]] && options+=(--batch-tokens "$batch") || options+=(--batch-size "$batch")
for rate in "${rates[@]}"; do
  "$vcluster" down
  "$vcluster" up h1:cpu=1.0,slots=1 h2:cpu=1.0,slots=1 --rate "$rate"
  for ((round = 1; round <= rounds; ++round)); do
    for type in fp32 bf16; do
      before=$(sent_by h2)
      train_on_hosts --reduce-precision $type --balance equal --max-update "$updates" --save-interval 0 --save-minutes 0 --save-dir "$results/$rate-$type-$round"
      echo "$(($(sent_by h2) - before))" >"$results/$rate-$type-$round/sent"
    done
  done
done
python3 - "$results" "$updates" "$rounds" "${rates[@]}" <<'PY'
import json, pathlib, statistics, sys
results, updates, rounds = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])

def run(rate, kind, number):
    folder = results / f"{rate}-{kind}-{number}"
    lines = [line for line in map(json.loads, open(folder / "metrics.jsonl")) if line["kind"] == "train"][3:]
    return (1000 * statistics.median(line["units"] / line["step_ms"] for line in lines),
            int((folder / "sent").read_text()) / updates / 1e6)

print(f"{'link':10}{'fp32':>28}{'MB':>8}{'bf16':>28}{'MB':>8}{'ratio':>24}")
for rate in sys.argv[4:]:
    found = {kind: [run(rate, kind, n) for n in range(1, rounds + 1)] for kind in ("fp32", "bf16")}
    text = f"{rate:10}"
    for kind in found:
        speeds = sorted(speed for speed, _ in found[kind])
        text += f"{f'{statistics.median(speeds):.1f} ({speeds[0]:.1f} to {speeds[-1]:.1f})':>28}"
        text += f"{statistics.median(sent for _, sent in found[kind]):8.1f}"
    ratios = sorted(b[0] / a[0] for a, b in zip(found["fp32"], found["bf16"]))
    print(text + f"{f'{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})':>24}")
PY
