#!/usr/bin/env bash
# The optimizer's state cut over two ranks beside PyTorch's FSDP2 (fully_shard) over gloo: the same GPT-2, batch, data and
# AdamW, a thread a rank, in turns: ms an update and peak memory. Then what each does where ranks are unlike, tried on
# small networks in fp64. Keep the machine otherwise idle.
set -euo pipefail
shopt -s inherit_errexit

usage='usage: jobs/compare/fsdp.sh DATA [times|cases]     (default: both)
DATA: shards of inputs/python/prepare_gpt2.py
environment:
  HETSEQ         the program (build/cpu/bin/hetseq)
  HETSEQ_PYTHON  Python with torch and transformers (build/python/bin/python)
  WIDTH, LAYERS  of GPT-2 (384, 6)
  BATCH          samples of a rank (4)
  UPDATES        of a run (8)
  ROUNDS         (3)'
[[ ${1-} != -h && ${1-} != --help ]] || { echo "$usage"; exit 0; }
[[ ($# == 1 || $# == 2) && ${2-times} =~ ^(times|cases)$ ]] || { echo "$usage" >&2; exit 64; }
source "$(dirname "$0")/../common.sh"
data=$1 what=${2:-both} rounds=${ROUNDS:-3} batch=${BATCH:-4} updates=${UPDATES:-8}
hetseq=${HETSEQ:-build/cpu/bin/hetseq}
size=(--width "${WIDTH:-384}" --layers "${LAYERS:-6}")
python=${HETSEQ_PYTHON:-build/python/bin/python}
export HETSEQ_PYTHON=$python PYTHONPATH=${PYTHONPATH:-$PWD/python}
compgen -G "$data" >/dev/null || { echo "no file matches $data: see inputs/python/prepare_gpt2.py" >&2; exit 66; }
[[ -x $hetseq ]] || { echo "there is no $hetseq: build it (docs/building.md), or name it in HETSEQ" >&2; exit 69; }
"$python" -c 'import torch.distributed.fsdp, transformers, h5py' ||
  { echo "$python lacks torch, transformers or h5py: jobs/setup.sh --python, or name another in HETSEQ_PYTHON" >&2; exit 69; }
allow_ranks 3
export OMP_NUM_THREADS=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The self-test before the first update would be the peak of this small a model.
sed 's/^class Gpt2.*/&\n    self_test = False/' inputs/python/gpt2.py >"$work/gpt2.py"

# started NAME COMMAND...: on two ranks, its output in $work/NAME.
started() {
  echo "$1" >&2
  mpirun -np "${ranks:-2}" "${@:2}" >"$work/$1" 2>"$work/log" || { cat "$work/$1" "$work/log" >&2; return 1; }
}
ours() { # NAME OPTION...
  started "$1" "$hetseq" train "$work/gpt2.py:Gpt2" --data "$data" --threads 1 --cache-dir none --optimizer adamw --json \
    --log-interval 1 "${@:2}"
}
times_round() {
  local way
  for way in none even memory; do
    cut=(--shard optimizer --shard-by "$way")
    [[ $way != none ]] || cut=(--shard none)
    ours "hetseq-$way-$round" "${size[@]}" --batch-size $((2 * batch)) --max-sentences "$batch" --balance equal \
      --max-update "$updates" "${cut[@]}"
  done
  fsdp=("$python" jobs/compare/gpt2_fsdp.py "$data" --batch "$batch" --updates "$updates" "${size[@]}")
  started "fsdp-freed-$round" "${fsdp[@]}"
  started "fsdp-freed-tuned-$round" "${fsdp[@]}" --tuned
  started "fsdp-kept-tuned-$round" "${fsdp[@]}" --tuned --keep-values
}
times_table() {
  python3 - "$work" <<'PY'
import json, pathlib, statistics, sys
ways = {"hetseq-none": "hetseq, `--shard none`", "hetseq-even": "hetseq, `--shard optimizer --shard-by even`",
        "hetseq-memory": "hetseq, `--shard optimizer --shard-by memory`",
        "fsdp-freed": "FSDP2, as users run it", "fsdp-freed-tuned": "FSDP2, tuned",
        "fsdp-kept-tuned": "FSDP2, tuned, values kept until backward"}

def run(path):
    text = path.read_text()
    found = json.loads(text[text.index("{"):])
    if "ms" in found:
        return found
    return {"ms": found["step_ms"]["median"], "peaks": [rank["peak_memory_mb"] for rank in found["ranks"]]}

def spread(values, form):
    return f"{statistics.median(values):{form}} ({min(values):{form}} to {max(values):{form}})"

first = None
print("| program | ms an update | of `--shard none`'s | peaks of the ranks, MiB |\n|---|---|---|---|")
for name, title in ways.items():
    runs = [run(path) for path in sorted(pathlib.Path(sys.argv[1]).glob(name + "-[0-9]*"))]
    first = first or runs
    peaks = " and ".join(f"{statistics.median(rank):,.0f}" for rank in zip(*(each["peaks"] for each in runs)))
    ratios = [own["ms"] / none["ms"] for own, none in zip(runs, first)]
    print(f"| {title} | {spread([each['ms'] for each in runs], ',.0f')} | "
          f"{'1' if runs is first else spread(ratios, '.2f')} | {peaks} |")
PY
}

# same NAME RUN OTHER: whether their models have the same bits, or how far they are apart.
same() {
  "$python" - "$1" "$work/$2/model.safetensors" "$work/$3/model.safetensors" <<'PY'
import sys
import safetensors.torch
name, own, other = sys.argv[1], *map(safetensors.torch.load_file, sys.argv[2:])
if all(own[key].equal(other[key]) for key in other):
    print(f"{name}: the same bits")
else:
    apart = max(((own[key] - other[key]).abs().max() / other[key].abs().max().clamp_min(1e-30)).item() for key in other)
    print(f"{name}: differs by {apart:.1e}")
PY
}
small() { # NAME SENTENCES OPTION...
  ours "$1" --width 64 --layers 1 --precision fp64 --batch-size 12 --max-sentences "$2" --balance declared --max-update 4 \
    --save-interval 0 --save-minutes 0 --save-dir "$work/runs/${1%%-then*}" "${@:3}"
}
our_cases() {
  mkdir "$work/runs"
  ranks=1 small one 12
  small unequal 0=9,1=3
  small without 0=12,1=0
  small none-of-it 0=9,1=3 --shard optimizer --shard-by 0=0,1=1
  small parts-then 0=9,1=3 --shard optimizer --shard-by 0=1,1=3 --stop-after 2 --stop-exit-code 0
  cp -r "$work/runs/parts" "$work/runs/other"
  ranks=3 small other-then-three 0=4,1=4,2=4 --shard optimizer --shard-by 0=3,1=0,2=1
  small parts-then-others 0=9,1=3 --shard optimizer --shard-by 0=5,1=1
  echo 'hetseq, after 4 updates:'
  same '9 and 3 rows beside one rank' runs/unequal runs/one
  same '12 and 0 rows beside one rank' runs/without runs/one
  same 'state on rank 1 alone beside a whole one' runs/none-of-it runs/unequal
  same 'continued on 3 ranks, other parts, beside one that was not interrupted' runs/other runs/unequal
  same 'continued with other parts beside one that was not interrupted' runs/parts runs/unequal
}
fsdp_cases() {
  local case
  echo 'FSDP2:'
  for case in gradients skip empty empty-gpt2 parts outside whole; do
    echo "$case" >&2
    timeout 120 mpirun -np 2 "$python" jobs/compare/fsdp_cases.py "$case" 2>"$work/log" || true
    grep -h -m1 'terminate called' -A1 "$work/log" || true
  done
  mkdir "$work/fsdp"
  ranks=2 started saved "$python" jobs/compare/fsdp_cases.py save "$work/fsdp"
  for count in 2 1 3; do
    ranks=$count started "continued-$count" "$python" jobs/compare/fsdp_cases.py continue "$work/fsdp"
    cat "$work/continued-$count"
  done
}

if [[ $what != cases ]]; then
  for ((round = 1; round <= rounds; ++round)); do times_round; done
  times_table
fi
if [[ $what != times ]]; then
  our_cases
  fsdp_cases
fi
