#!/usr/bin/env bash
# How long a start takes to its first update, in turns: of a new run whose ranks' speeds are measured, of one
# whose speeds are known, and of one that goes on from a checkpoint (docs/performance.md). Wants a machine that is idle.
set -euo pipefail
shopt -s inherit_errexit

usage='usage: jobs/scaling/starts.sh mnist | mini | base | python
mini and base: BERTs of these sizes; python: the network of inputs/python/fashion_mnist.py
environment:
  HETSEQ   the program (build/cpu/bin/hetseq)
  RANKS    (2)
  ROUNDS   (5)'
[[ ${1-} != -h && ${1-} != --help ]] || { echo "$usage"; exit 0; }
[[ ${1-} =~ ^(mnist|mini|base|python)$ && $# == 1 ]] || { echo "$usage" >&2; exit 64; }
source "$(dirname "$0")/../common.sh"
ranks=${RANKS:-2} rounds=${ROUNDS:-5}
[[ $ranks$rounds =~ ^[0-9]+$ ]] || { echo "$usage" >&2; exit 64; }
hetseq=$(realpath "${HETSEQ:-build/cpu/bin/hetseq}")
[[ -x $hetseq ]] || { echo "there is no $hetseq: build it (docs/building.md), or name it in HETSEQ" >&2; exit 69; }
case $1 in
  mnist | python) prepare_fashion_mnist ;;
  *) prepare_bert_8192 ;;
esac
case $1 in
  mnist) task=(--task mnist --data "$PWD/data/fashion-mnist/train*.h5" --batch-size 256) ;;
  python)
    use_hetseq_of_python
    task=("$PWD/inputs/python/fashion_mnist.py" --data "$PWD/data/fashion-mnist/train*.h5" --batch-size 256) ;;
  mini) task=(--task bert --model-config mini --data "$PWD/data/bert-8192/train*.h5" --batch-size 32) ;;
  base) task=(--task bert --model-config base --data "$PWD/data/bert-8192/train*.h5" --batch-size 4) ;;
esac
allow_ranks "$ranks"
export OMP_NUM_THREADS=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# begin KIND UPDATES: a line in $work/times with the seconds to the first update, and of reading a checkpoint.
begin() {
  mpirun -np "$ranks" "$hetseq" train "${task[@]}" --threads 1 --cache-dir "$work/cache" --save-interval 0 --save-minutes 0 \
    --max-update "$2" --save-dir "$work/run" >"$work/log" 2>&1 || { cat "$work/log" >&2; return 1; }
  echo "$1 $(sed -nE 's/^ *"startup_s": ([0-9.]+).*/\1/p' "$work/run/summary.json")" \
    "$(sed -nE 's/.*verified and read in ([0-9.]+) s.*/\1/p' "$work/log")" >>"$work/times"
}
for ((round = 1; round <= rounds; ++round)); do
  rm -rf "$work"/{cache,run}
  begin 'new, speeds measured' 2
  rm -rf "$work/run"
  begin 'new, speeds known' 2
  begin 'goes on' 4
done
echo '| start | first update after, s | reading the checkpoint, s |'
echo '|---|---|---|'
python3 - "$work/times" <<'PY'
import statistics, sys
first, reading = {}, {}
for line in open(sys.argv[1]):
    words = line.split()
    kind = " ".join(word for word in words if not word[0].isdigit())
    numbers = [float(word) for word in words if word[0].isdigit()]
    first.setdefault(kind, []).append(numbers[0])
    reading.setdefault(kind, []).extend(numbers[1:])
def text(values):
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})" if values else ""
for kind in first:
    print(f"| {kind} | {text(first[kind])} | {text(reading[kind])} |")
PY
