#!/usr/bin/env bash
# hetseq's pipeline over unlike virtual hosts beside torch.distributed.pipelining's Schedule1F1B over gloo, in turns: the
# same size of BERT, batch, micro-batches, AdamW and one thread a rank; PyTorch once with as many layers for each host and
# once with hetseq's cut. Needs root, iproute2, control groups, and a machine that is otherwise idle.
set -euo pipefail
shopt -s inherit_errexit

usage='usage: jobs/compare/pipelining.sh [RATE...]     (as 1gbit 100mbit; max: no limit; default: max)
environment:
  HETSEQ         the program (build/cpu/bin/hetseq)
  HETSEQ_PYTHON  Python with torch and transformers (build/python/bin/python)
  CORES          of the four hosts (1.0 0.5 0.25 0.25): less beside other work
  BATCH          samples of an update (64)
  SAMPLES        of a micro-batch at the most (4)
  UPDATES        of each run, the first of which does not count (6)
  ROUNDS         (3)'
[[ ${1-} != -h && ${1-} != --help ]] || { echo "$usage"; exit 0; }
source "$(dirname "$0")/../common.sh"
rates=("${@:-max}")
hetseq=$(realpath "${HETSEQ:-build/cpu/bin/hetseq}") python=$PWD/${HETSEQ_PYTHON:-build/python/bin/python}
vcluster=tests/cluster/vcluster
batch=${BATCH:-64} samples=${SAMPLES:-4} updates=${UPDATES:-6} rounds=${ROUNDS:-3}
if [[ ! $batch$samples$updates$rounds =~ ^[0-9]+$ ]] || ((updates < 2)); then echo "$usage" >&2; exit 64; fi
[[ -x $hetseq ]] || { echo "there is no $hetseq: build it (docs/building.md), or name it in HETSEQ" >&2; exit 69; }
"$python" -c 'import torch.distributed.pipelining, transformers, h5py' ||
  { echo "$python lacks torch, transformers or h5py: jobs/setup.sh --python, or name another in HETSEQ_PYTHON" >&2; exit 69; }
"$vcluster" possible ||
  { echo 'virtual hosts need root, iproute2, network namespaces and control groups' >&2; exit 69; }
prepare_bert_8192
export OMP_NUM_THREADS=1
read -ra cores <<<"${CORES:-1.0 0.5 0.25 0.25}"
((${#cores[@]} == 4)) || { echo "$usage" >&2; exit 64; }
data=$PWD/data/bert-8192
work=$PWD/build/compare/pipelining
rm -rf "$work"
mkdir -p "$work"
trap '"$vcluster" down' EXIT

# ours: what it has chosen in $cut, $order (the ranks of its stages) and $micro_batch.
ours() {
  local run=$work/hetseq-$rate-$round
  echo "${run##*/} (load $(cut -d ' ' -f 1 /proc/loadavg))" >&2
  "$vcluster" run -np 4 -x OMP_NUM_THREADS=1 "$hetseq" train --task bert --model-config "$data/model.json" \
    --data "$data/train*.h5" --optimizer adamw --threads 1 --cache-dir none --batch-size "$batch" --max-sentences "$samples" \
    --virtual-workers h1+h2+h3+h4 --max-update "$updates" --log-interval 1 --save-interval 0 --save-minutes 0 --save-dir "$run" \
    >"$run.log" 2>&1 || { cat "$run.log" >&2; return 1; }
  rm -rf "$run/checkpoints" "$run/model.safetensors"
  read -r cut order micro_batch < <(python3 - "$run/summary.json" <<'PY'
import json, sys
summary = json.load(open(sys.argv[1]))
stages = sorted((rank["stage"]["number"], rank["stage"]["units"], rank["rank"]) for rank in summary["ranks"] if "stage" in rank)
print("+".join(str(units) for _, units, _ in stages), "+".join(str(rank) for *_, rank in stages),
      summary["workers"][0]["micro_batch"])
PY
  )
}
# theirs NAME CUT ORDER
theirs() {
  local run=$work/$1-$rate-$round address
  address=$("$vcluster" status | awk -v host="h$((${3%%+*} + 1))" '$1 == host {print $2}')
  echo "${run##*/} (load $(cut -d ' ' -f 1 /proc/loadavg))" >&2
  "$vcluster" run -np 4 -x OMP_NUM_THREADS=1 -x MASTER_ADDR="$address" -x GLOO_SOCKET_IFNAME=eth0 "$python" \
    "$PWD/jobs/compare/bert_pipelining.py" "$data/train*.h5" --config "$data/model.json" --cut "$2" --order "$3" \
    --batch "$batch" --micro-batch "$micro_batch" --updates "$updates" --tuned >"$run.json" 2>"$work/log" ||
    { cat "$work/log" >&2; return 1; }
}

for rate in "${rates[@]}"; do
  limit=(--rate "$rate")
  [[ $rate != max ]] || limit=()
  "$vcluster" down
  "$vcluster" up h1:cpu="${cores[0]}",slots=1 h2:cpu="${cores[1]}",slots=1 h3:cpu="${cores[2]}",slots=1 \
    h4:cpu="${cores[3]}",slots=1 "${limit[@]}"
  for ((round = 1; round <= rounds; ++round)); do
    ours
    theirs equal 3+2+2+3 0+1+2+3
    theirs cut "$cut" "$order"
  done
done
python3 - "$work" "$rounds" "${rates[@]}" <<'PY'
import json, pathlib, statistics, sys
work, rounds = pathlib.Path(sys.argv[1]), int(sys.argv[2])
ways = {"equal": "PyTorch, equal cut", "cut": "PyTorch, hetseq's cut"}

def spread(values, form):
    return f"{statistics.median(values):{form}} ({min(values):{form}} to {max(values):{form}})"

def ours(rate, number):
    lines = map(json.loads, open(work / f"hetseq-{rate}-{number}" / "metrics.jsonl"))
    return statistics.median([line["step_ms"] for line in lines if line["kind"] == "train"][1:])

print("| link | program | cut | ms an update | of hetseq's |\n|---|---|---|---|---|")
for rate in sys.argv[3:]:
    numbers = range(1, rounds + 1)
    own = [ours(rate, number) for number in numbers]
    cuts = ", ".join("+".join(map(str, json.loads((work / f"cut-{rate}-{n}.json").read_text())["cut"])) for n in numbers)
    print(f"| {rate} | hetseq | {cuts} | {spread(own, ',.0f')} | 1 |")
    for name, title in ways.items():
        found = [json.loads((work / f"{name}-{rate}-{number}.json").read_text())["ms"] for number in numbers]
        print(f"| {rate} | {title} | {'3+2+2+3' if name == 'equal' else cuts} | {spread(found, ',.0f')} | "
              f"{spread([theirs / mine for theirs, mine in zip(found, own)], '.2f')} |")
PY
