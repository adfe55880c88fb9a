#!/usr/bin/env bash
# Seconds to a loss with and without --staleness, in turns: a BERT of 5.4 million parameters on two virtual hosts with a
# slow link (docs/virtual-workers.md). Needs root, iproute2, and a machine that is otherwise idle.
set -euo pipefail
shopt -s inherit_errexit

usage='usage: jobs/scaling/staleness.sh [RATE]     (of the links: 100mbit)
environment:
  HETSEQ   the program (build/cpu/bin/hetseq)
  CORES    of each host (1.0)
  LEVELS   of staleness ("0 1 4")
  BATCH    samples of an update (64)
  LR       (0.0005)
  UPDATES  of each run (150)
  ROUNDS   (1)
  LOSSES   mean losses of ten updates in a row ("7.6 7.4 7.2 7.0")'
[[ ${1-} != -h && ${1-} != --help ]] || { echo "$usage"; exit 0; }
rate=${1:-100mbit} cores=${CORES:-1.0} batch=${BATCH:-64} lr=${LR:-0.0005} updates=${UPDATES:-150} rounds=${ROUNDS:-1}
read -ra levels <<<"${LEVELS:-0 1 4}"
read -ra losses <<<"${LOSSES:-7.6 7.4 7.2 7.0}"
if (($# > 1)) || [[ ! $batch$updates$rounds${levels[*]} =~ ^[0-9\ ]+$ ]]; then echo "$usage" >&2; exit 64; fi
source "$(dirname "$0")/../common.sh"
hetseq=$(realpath "${HETSEQ:-build/cpu/bin/hetseq}")
vcluster=tests/cluster/vcluster
[[ -x $hetseq ]] || { echo "there is no $hetseq: build it (docs/building.md), or name it in HETSEQ" >&2; exit 69; }
"$vcluster" possible ||
  { echo 'virtual hosts need root, iproute2, network namespaces and control groups' >&2; exit 69; }
prepare_bert_8192
work=$PWD/build/scaling/staleness
rm -rf "$work"
mkdir -p "$work"
trap '"$vcluster" down' EXIT
sed -E 's/"hidden_size": [0-9]+/"hidden_size": 256/; s/"num_hidden_layers": [0-9]+/"num_hidden_layers": 4/
  s/"num_attention_heads": [0-9]+/"num_attention_heads": 4/; s/"intermediate_size": [0-9]+/"intermediate_size": 1024/' \
  data/bert-8192/model.json >"$work/model.json"
"$vcluster" down
"$vcluster" up "h1:cpu=$cores,slots=1" "h2:cpu=$cores,slots=1" --rate "$rate"
for ((round = 1; round <= rounds; ++round)); do
  for level in "${levels[@]}"; do
    echo "staleness $level, round $round (load $(cut -d ' ' -f 1 /proc/loadavg))" >&2
    "$vcluster" run -np 2 -x OMP_NUM_THREADS=1 "$hetseq" train --task bert --model-config "$work/model.json" \
      --data "$PWD/data/bert-8192/train*.h5" --optimizer adamw --lr "$lr" --warmup-updates 10 --batch-size "$batch" \
      --max-sentences 16 --max-update "$updates" --staleness "$level" --threads 1 --balance equal --cache-dir none \
      --log-interval 1 --save-interval 0 --save-minutes 0 --save-dir "$work/$level-$round" >"$work/log" 2>&1 ||
      { cat "$work/log" >&2; exit 1; }
    rm -rf "$work/$level-$round"/checkpoints "$work/$level-$round"/*.safetensors
  done
done
python3 - "$work" "$rounds" "${levels[*]}" "${losses[@]}" <<'PY'
import json, pathlib, statistics, sys
work, rounds, levels, losses = pathlib.Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3].split(), list(map(float, sys.argv[4:]))

def spread(values, form):
    return f"{statistics.median(values):{form}} ({min(values):{form}} to {max(values):{form}})" if len(values) > 1 else \
        f"{values[0]:{form}}"

def reached(lines, loss):
    """Updates and seconds until the last ten updates have this mean loss; None where they never have."""
    for end in range(10, len(lines) + 1):
        if statistics.mean(line["loss"] for line in lines[end - 10:end]) <= loss:
            return end, sum(line["step_ms"] for line in lines[:end]) / 1000
    return None

print("| staleness | ms an update |", " | ".join(f"updates to {loss} | seconds" for loss in losses), "|")
print("|---|---|" + "---|" * (2 * len(losses)))
for level in levels:
    runs = [[line for line in map(json.loads, open(work / f"{level}-{n}/metrics.jsonl")) if line["kind"] == "train"]
            for n in range(1, rounds + 1)]
    cells = [level, spread([statistics.median(line["step_ms"] for line in run) for run in runs], ",.0f")]
    for loss in losses:
        found = [reached(run, loss) for run in runs]
        cells += ["never", ""] if None in found else [f"{found[0][0]}", spread([seconds for _, seconds in found], ".0f")]
    print("|", " | ".join(cells), "|")
PY
