#!/usr/bin/env bash
# Is this version as fast as another one? Updates of MNIST, BERT mini and a small translator on two ranks of one thread, by
# both programs in turns on the same data. Prints milliseconds an update (median of the rounds' medians, least to most) and
# the ratio within each round. Keep the machine otherwise idle.
set -euo pipefail

usage='usage: jobs/compare/same_speed.sh OTHER [ROUNDS]      (default: 11 rounds)
  OTHER   the program of another build, as ../before/build/cpu/bin/hetseq'
[[ ${1-} != -h && ${1-} != --help ]] || { echo "$usage"; exit 0; }
rounds=${2:-11}
[[ $# -ge 1 && $# -le 2 && -x $1 && $rounds =~ ^[1-9][0-9]*$ ]] || { echo "$usage" >&2; exit 64; }
other=$(realpath "$1")
source "$(dirname "$0")/../common.sh"
set -- build/cpu/bin
source tests/end_to_end/common.sh
allow_ranks 2
[[ -x $bin/make_images ]] || { echo "there is no $bin/make_images: build the tests (docs/building.md)" >&2; exit 69; }
make_some_images 4000 200
make_bert_and_numbers
declare -A options=(
  [mnist]="--task mnist --data $work/data/train*.h5 --max-sentences 32 --batch-size 64 --max-update 120"
  [bert]="--task bert --model-config mini --data $work/bert/train*.h5 --max-sentences 16 --batch-size 32 --max-update 24"
  [translation]="--task translation --model-config tiny --data $work/numbers/train*.h5 --max-tokens 1000 --batch-tokens 2000
    --max-update 120"
)
# update_ms PROGRAM TASK: the median of its updates.
update_ms() {
  local words
  set -f  # the program expands the names of files
  read -r -d '' -a words <<<"${options[$2]}" || true
  set +f
  timeout 300 mpirun -np 2 "$1" bench step "${words[@]}" --threads 1 --balance declared --json 2>"$work/log" >"$work/json" ||
    { cat "$work/log" >&2; return 1; }
  json "$work/json" step_ms.median
}
for ((round = 1; round <= rounds; ++round)); do
  for task in mnist bert translation; do
    # Whoever is first in one round is second in the next.
    if ((round % 2)); then
      now=$(update_ms "$bin/hetseq" "$task") before=$(update_ms "$other" "$task")
    else
      before=$(update_ms "$other" "$task") now=$(update_ms "$bin/hetseq" "$task")
    fi
    echo "$task $before $now" | tee -a "$work/times" >&2
  done
done
python3 - "$work/times" <<'PY'
import collections, statistics, sys
times = collections.defaultdict(list)
for line in open(sys.argv[1]):
    task, before, now = line.split()
    times[task].append((float(before), float(now)))

def spread(values, form):
    return f"{statistics.median(values):{form}} ({min(values):{form}} to {max(values):{form}})"

print("| | before, ms an update | now | ratio |\n|---|---|---|---|")
for task, pairs in times.items():
    print(f"| {task} | {spread([b for b, _ in pairs], '.2f')} | {spread([n for _, n in pairs], '.2f')} "
          f"| {spread([n / b for b, n in pairs], '.3f')} |")
PY
