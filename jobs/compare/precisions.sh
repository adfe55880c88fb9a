#!/usr/bin/env bash
# Whole trainings in several precisions: the validation loss beside fp32's, and how often an update was repeated because a
# gradient overflowed. Dropout is that of the configurations.
set -euo pipefail
shopt -s inherit_errexit

usage='usage: jobs/compare/precisions.sh OUTPUT mnist=FOLDER|bert=FOLDER|numbers=FOLDER...
FOLDER holds the shards that the head of inputs/mnist.cfg, bert-mini-novels.cfg or numbers.cfg makes.
environment:
  HETSEQ      the program (build/cpu/bin/hetseq)
  DEVICE      its --device (cuda)
  PRECISIONS  of one rank each; A+B: two ranks (fp32 bf16 fp16 fp16+fp32)
  SEEDS       for MNIST; the others have the first (1 2 3)
  UPDATES     of BERT mini (600)
  TOGETHER    runs at a time (1)'
(($# >= 2)) || { echo "$usage" >&2; exit 64; }
output=$1; shift
hetseq=${HETSEQ:-build/cpu/bin/hetseq}
read -ra precisions <<<"${PRECISIONS:-fp32 bf16 fp16 fp16+fp32}"
read -ra seeds <<<"${SEEDS:-1 2 3}"
mkdir -p "$output"

# train NAME PRECISION WORDS...: a run in OUTPUT/NAME; its log beside it.
train() {
  local name=$1 precision=$2 ranks=1; shift 2
  [[ $precision != *+* ]] || { ranks=2; precision="0=${precision%+*},1=${precision#*+}"; }
  mpirun -np "$ranks" "$hetseq" train "$@" --device "${DEVICE:-cuda}" --precision "$precision" --cache-dir none \
    --save-interval 0 --save-minutes 0 --log-interval 1000 --overwrite --save-dir "$output/$name" >"$output/$name.log" 2>&1 ||
    { echo "$name failed:" >&2; grep -m1 " error " "$output/$name.log" >&2 || tail -3 "$output/$name.log" >&2; }
}
# begin ...: `train` as soon as fewer than TOGETHER runs are under way.
begin() {
  while (($(jobs -rp | wc -l) >= ${TOGETHER:-1})); do wait -n; done
  train "$@" &
}
for choice in "$@"; do
  folder=${choice#*=} task=${choice%%=*}
  data=(--data "$folder/train*.h5")
  for precision in "${precisions[@]}"; do
    case $task in
      mnist)
        for seed in "${seeds[@]}"; do
          begin "mnist-$precision-$seed" "$precision" inputs/mnist.cfg "${data[@]}" --valid-data "$folder/t10k*.h5" --seed "$seed" \
            --max-sentences 64
        done ;;
      bert)
        begin "bert-$precision-${seeds[0]}" "$precision" inputs/bert-mini-novels.cfg "${data[@]}" --valid-data "$folder/valid*.h5" \
          --max-sentences 32 --max-update "${UPDATES:-600}" --warmup-updates 60 ;;
      numbers)
        begin "numbers-$precision-${seeds[0]}" "$precision" inputs/numbers.cfg "${data[@]}" --valid-data "$folder/valid*.h5" ;;
      *) echo "$usage" >&2; exit 64 ;;
    esac
  done
done
wait
python3 - "$output" "${precisions[@]}" <<'PY'
import collections, json, pathlib, statistics, sys
found = collections.defaultdict(dict)
for path in sorted(pathlib.Path(sys.argv[1]).glob("*/summary.json")):
    task, precision, seed = path.parent.name.rsplit("-", 2)
    found[task][precision, seed] = json.loads(path.read_text())
print(f"{'':24}{'validation loss':>18}{'of fp32':>10}{'repeats':>9}{'of updates':>11}")
for task, runs in found.items():
    for precision in sys.argv[2:]:
        own = {seed: run for (p, seed), run in runs.items() if p == precision and "valid" in run}
        if not own:
            continue
        ratios = [run["valid"]["loss"] / runs["fp32", seed]["valid"]["loss"] for seed, run in own.items() if ("fp32", seed) in runs]
        loss = statistics.mean(run["valid"]["loss"] for run in own.values())
        print(f"{task + ' ' + precision:24}{loss:18.5f}{statistics.mean(ratios) if ratios else float('nan'):10.4f}"
              f"{sum(run['overflows'] for run in own.values()):9}{sum(run['updates'] for run in own.values()):11}")
PY
