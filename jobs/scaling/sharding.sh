#!/usr/bin/env bash
# What it costs to cut the optimizer's state over two ranks: an update's time, the bytes that the hosts send, and memory,
# with a whole state and with one cut evenly and by memory, in turns; on this machine and over links of each RATE between
# two virtual hosts. Needs root and iproute2 for the latter, and a machine that is otherwise idle.
set -euo pipefail
shopt -s inherit_errexit

usage='usage: jobs/scaling/sharding.sh DATA [RATE...]     (rates as 1gbit 100mbit; max: no limit)
DATA: shards for the task
environment:
  HETSEQ   the program (build/cpu/bin/hetseq)
  TASK     what is trained (--task bert --model-config mini --optimizer adamw)
  BATCH    samples of an update, half of them a micro-batch of each rank (16)
  UPDATES  of each run, the first three of which do not count (8)
  ROUNDS   (3)'
[[ ${1-} != -h && ${1-} != --help ]] || { echo "$usage"; exit 0; }
(($# >= 1)) || { echo "$usage" >&2; exit 64; }
source "$(dirname "$0")/../common.sh"
data=$1 rates=("${@:2}")
hetseq=${HETSEQ:-build/cpu/bin/hetseq}
vcluster=tests/cluster/vcluster
batch=${BATCH:-16} updates=${UPDATES:-8} rounds=${ROUNDS:-3}
read -ra task <<<"${TASK:---task bert --model-config mini --optimizer adamw}"
if [[ ! $batch$updates$rounds =~ ^[0-9]+$ ]] || ((updates <= 3)); then echo "$usage" >&2; exit 64; fi
[[ -x $hetseq ]] || { echo "there is no $hetseq: build it (docs/building.md), or name it in HETSEQ" >&2; exit 69; }
compgen -G "$data" >/dev/null || { echo "no file matches $data" >&2; exit 66; }
((${#rates[@]} == 0)) || "$vcluster" possible ||
  { echo 'virtual hosts need root, iproute2, network namespaces and control groups' >&2; exit 69; }
allow_ranks 2
export OMP_NUM_THREADS=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# sent: bytes that both hosts have sent since they are up.
sent() {
  local host
  for host in h1 h2; do "$vcluster" exec "$host" cat /proc/net/dev; done | awk -F '[: ]+' '/eth0/ {sum += $11} END {printf "%.0f", sum}'
}
# train LINK WAY OPTION...: on two ranks; its metrics in $work/LINK-WAY-ROUND.
train() {
  local link=$1 run=$work/$1-$2-$round start=(mpirun -np 2) before=0; shift 2
  if [[ $link != none ]]; then
    start=("$vcluster" run -np 2 -x OMP_NUM_THREADS=1)
    before=$(sent)
  fi
  echo "${run##*/}" >&2
  "${start[@]}" "$hetseq" train "${task[@]}" --data "$data" --batch-size "$batch" --max-sentences $((batch / 2)) --threads 1 \
    --balance equal --max-update "${length:-$updates}" --log-interval 1 --save-interval 0 --save-minutes 0 --cache-dir none --save-dir "$run" "$@" \
    >"$work/log" 2>&1 || { cat "$work/log" >&2; return 1; }
  rm -rf "$run/checkpoints" "$run/model.safetensors"
  if [[ $link != none ]]; then echo $(($(sent) - before)) >"$run/sent"; fi
}
each_way() { # LINK
  train "$1" none
  train "$1" even --shard optimizer --shard-by even
  train "$1" memory --shard optimizer --shard-by memory
}
# What start and end send, in runs of one update, is left out of an update's bytes.
rounds_over() { # LINK
  if [[ $1 != none ]]; then
    round=start length=1
    each_way "$1"
    unset length
  fi
  for ((round = 1; round <= rounds; ++round)); do
    each_way "$1"
  done
}

rounds_over none
for rate in "${rates[@]}"; do
  limit=(--rate "$rate")
  [[ $rate != max ]] || limit=()
  "$vcluster" up h1:slots=1 h2:slots=1 "${limit[@]}"
  trap '"$vcluster" down; rm -rf "$work"' EXIT
  rounds_over "$rate"
  "$vcluster" down
  trap 'rm -rf "$work"' EXIT
done
python3 - "$work" "$updates" "$rounds" none "${rates[@]}" <<'PY'
import json, pathlib, statistics, sys
work, updates, rounds, links = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]

def run(link, way, number):
    folder = work / f"{link}-{way}-{number}"
    lines = [line for line in map(json.loads, open(folder / "metrics.jsonl")) if line["kind"] == "train"][3:]
    ranks = json.loads((folder / "summary.json").read_text())["ranks"]
    sent, of_start = folder / "sent", work / f"{link}-{way}-start" / "sent"
    return {"ms": statistics.median(line["step_ms"] for line in lines),
            "mb": (int(sent.read_text()) - int(of_start.read_text())) / (updates - 1) / 1e6 if sent.exists() else None,
            "optimizer": statistics.median(rank["optimizer_ms"] for rank in ranks),
            "peaks": [rank["peak_memory_mb"] for rank in ranks]}

def spread(values, form):
    return f"{statistics.median(values):{form}} ({min(values):{form}} to {max(values):{form}})"

print("| link | state cut | ms an update | of none's | MB sent an update | optimizer, ms | peaks of the ranks, MiB |")
print("|---|---|---|---|---|---|---|")
for link in links:
    found = {way: [run(link, way, n) for n in range(1, rounds + 1)] for way in ("none", "even", "memory")}
    for way, runs in found.items():
        ratios = [own["ms"] / first["ms"] for own, first in zip(runs, found["none"])]
        mb = "" if runs[0]["mb"] is None else f"{statistics.median(r['mb'] for r in runs):.1f}"
        peaks = " and ".join(f"{statistics.median(rank):,.0f}" for rank in zip(*(r["peaks"] for r in runs)))
        print(f"| {'one machine' if link == 'none' else link} | {way} | {spread([r['ms'] for r in runs], ',.0f')} | "
              f"{'1' if way == 'none' else spread(ratios, '.2f')} | {mb} | "
              f"{statistics.median(r['optimizer'] for r in runs):,.0f} | {peaks} |")
PY
