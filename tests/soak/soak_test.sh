#!/usr/bin/env bash
# soak_test.sh BINARY_DIR [DISTURBANCES [SEED [TASK]]]: a run that is killed, stopped, re-sized and cut into other virtual
# workers at random, again and again, whose config.cfg is removed, whose newest checkpoint is damaged and into whose folder
# second jobs are started, keeps every other checkpoint and ends with the parameters of a run of replicas that was left
# alone. A disturbance takes 2 to 4 s, one with a second job 10 s. Without a number there are 10, or as many as begin within
# half a minute.
# TASK: mnist (in fp64, the default); late (the same with --staleness 2); bf16 (the same in 16 bits, within their bound);
# python (a task in Python in fp64, whose block is computed again in backward at random; twice as long).
source "$(dirname "$0")/../end_to_end/common.sh"
disturbances=${2:-10}
most_s=1000000
(($# > 1)) || most_s=30
seed=${3:-$RANDOM}
task=${4:-mnist}
RANDOM=$seed
echo "$disturbances disturbances of $task, seed $seed"
make_images
options=(--data "$work/data/train*.h5" --max-sentences 4 --batch-size 8 --seed 3
  --balance declared --threads 1 --log-interval 50 --save-interval 0 --keep-last 2)
tolerance=1e-10
case $task in
  mnist) options+=(--task mnist --precision fp64 --lr 0.1) ;;
  late) options+=(--task mnist --precision fp64 --lr 0.05 --optimizer sgd --staleness 2) ;;
  bf16) options+=(--task mnist --precision bf16 --lr 0.01) tolerance=0.02 ;;
  python)
    export HETSEQ_PYTHON=${HETSEQ_PYTHON:-$PWD/build/python/bin/python} PYTHONPATH=$PWD/python
    export HETSEQ_PYTHON_LIBRARY=$bin/../lib/libhetseq_python.so PYTHONDONTWRITEBYTECODE=1
    cat >"$work/net.py" <<'PY'
import torch, hetseq
from torch import nn
from torch.nn import functional as F

class Net(hetseq.Task):
    fields = {"images": hetseq.Field(torch.uint8, (28, 28)), "labels": hetseq.Field(torch.int64, minimum=0, maximum=9, is_target=True)}
    chain, recompute = "blocks", ["blocks.*"]
    class module(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Linear(784, 32), nn.Linear(32, 10)
            self.blocks = nn.ModuleList([nn.Sequential(nn.Linear(32, 32), nn.GELU(), nn.Dropout(0.1))])
        def forward(self, images):
            x = self.first(images.flatten(1).to(self.first.weight.dtype) / 255)
            for block in self.blocks:
                x = block(x)
            return self.last(x)
    def model(self, config):
        return self.module()
    def forward(self, model, batch):
        return F.cross_entropy(model(batch["images"]), batch["labels"], reduction="sum")
PY
    options=("$work/net.py:Net" "${options[@]}" --precision fp64 --lr 0.1 --optimizer sgd) ;;
  *) fail "no task $task" ;;
esac
run=$work/run
mkdir "$run"
last=0 stops=0 kills=0 removals=0 refused=0 damages=0 damaged='' layouts=''

newest() { find "$run/checkpoints" -maxdepth 1 -name 'update-*[0-9]' | sort | tail -n 1 | sed 's/.*update-0*//'; }
# In hundredths of a second.
pause() { sleep "$(printf '%d.%02d' $(($1 / 100)) $(($1 % 100)))"; }
mpirun_of() { pgrep -P "$1" -x mpirun; }
random_rank() { pgrep -P "$(mpirun_of "$1")" | shuf -n 1 --random-source=<(yes "$RANDOM"); }

# Sets `layout`: options of replicas, or of virtual workers of one to three ranks each, which cut the three units; where they
# go in a quarter of the cases follows from what was measured.
random_layout() {
  local order first=0 size workers='' units=''
  layout=()
  [[ $task != python ]] || ((RANDOM % 2)) || layout=(--recompute all)
  case $((RANDOM % 5)) in
    0) return ;;
    1) [[ $task == late ]] || layout+=(--shard optimizer); return ;;
    2) layout+=(--virtual-workers auto); return ;;
  esac
  mapfile -t order < <(shuf -i "0-$((ranks - 1))" --random-source=<(yes "$RANDOM"))
  while ((first < ranks)); do
    size=$((RANDOM % 3 + 1))
    ((size <= ranks - first)) || size=$((ranks - first))
    workers+=${workers:+,}$(IFS=+; echo "${order[*]:first:size}")
    case $size in
      1) units+=${units:+,}3 ;;
      2) units+=${units:+,}$((RANDOM % 2 + 1))+ ; units+=$((3 - ${units: -2:1})) ;;
      3) units+=${units:+,}1+1+1 ;;
    esac
    first=$((first + size))
  done
  layout+=(--virtual-workers "$workers")
  ((RANDOM % 4 == 0)) || layout+=(--stage-units "$units")
}

# A second job is sent away while the first one lives. Where that one ends by itself first, it would go on instead.
second_job() {
  local launcher=$1 second=0
  timeout 120 "$bin/hetseq" train "${options[@]}" --save-dir "$run" --max-update 1000000 --save-interval-updates 1 \
    >"$work/second" 2>&1 || second=$?
  ((second == 78)) && grep -q 'is in use' "$work/second" && return 0
  kill -0 "$launcher" 2>/dev/null || return 0
  cat "$work/second"; fail "a second job had exit code $second"
}

disturb() {
  local launcher=$1 victim
  if ((RANDOM % 4 == 0)); then
    rm -f "$run/config.cfg"
    removals=$((removals + 1))
  fi
  if ((RANDOM % 6 == 0)) && [[ -e $run/lease.json ]]; then
    second_job "$launcher"
    refused=$((refused + 1))
  fi
  case $((RANDOM % 7)) in
    6) victim=$(mpirun_of "$launcher") && kill -9 "$victim" && how=orphaned ;;
    0 | 1 | 2) victim=$(random_rank "$launcher") && kill -9 "$victim" && how=killed ;;
    3) victim=$(mpirun_of "$launcher") && kill -USR1 "$victim" && how=signalled ;;
    4) touch "$run/STOP" && how=stopped ;;
    5) victim=$(mpirun_of "$launcher") && kill -TERM "$victim" && how=terminated ;;
  esac
}

inode_of() { stat -c %i "$1" 2>/dev/null || true; }

# Cuts or changes a file of the newest checkpoint where there is an older one, from which the next start has to go on.
damage_newest() {
  local saved file size
  mapfile -t saved < <(find "$run/checkpoints" -maxdepth 1 -name 'update-*[0-9]' | sort)
  ((${#saved[@]} > 1)) || return 0
  file=$(find "${saved[-1]}" -type f ! -name '.*' | sort | shuf -n 1 --random-source=<(yes "$RANDOM"))
  size=$(stat -c %s "$file")
  if ((RANDOM % 2)); then
    truncate -s $((size / 2)) "$file"
  else
    python3 - "$file" $((RANDOM * size / 32768)) <<'PY'
import sys
with open(sys.argv[1], "r+b") as file:
    file.seek(int(sys.argv[2]))
    byte = file.read(1)[0]
    file.seek(int(sys.argv[2]))
    file.write(bytes([byte ^ 4]))
PY
  fi
  ! "$bin/hetseq" checkpoint verify "$run" >"$work/verify" 2>&1 || fail "$file was damaged, and nothing is said of it"
  damaged=${saved[-1]} damaged_inode=$(inode_of "${saved[-1]}")
  last=$((10#${saved[-2]##*-}))
  damages=$((damages + 1))
}

for ((i = 1; i <= disturbances && SECONDS < most_s; ++i)); do
  ranks=$((RANDOM % 4 + 1))
  random_layout
  layouts+=" ${layout[*]:-$ranks}"
  timeout 120 mpirun -np $ranks "$bin/hetseq" train "${options[@]}" "${layout[@]}" --max-update 1000000 --save-dir "$run" \
    --save-interval-updates $((RANDOM % 9 + 1)) >"$work/log" 2>&1 &
  launcher=$!
  # Most of them are disturbed in training, also where the start is slow.
  if ((RANDOM % 4)); then
    until grep -q 'updates to run' "$work/log" || ! kill -0 "$launcher" 2>/dev/null; do sleep 0.1; done
  fi
  pause $((RANDOM % 220 + 60))
  how=nothing
  until disturb "$launcher" || ! kill -0 "$launcher" 2>/dev/null; do sleep 0.1; done
  rc=0
  wait "$launcher" || rc=$?
  # Ranks whose mpirun was killed notice it a moment later, and go on until then.
  for ((looks = 0; looks < 300; ++looks)); do
    pgrep -f -- "--save-dir $run " >/dev/null || break
    sleep 0.1
  done
  case $how,$rc in
    signalled,75 | stopped,75) stops=$((stops + 1)) ;;
    killed,137 | terminated,* | orphaned,*) kills=$((kills + 1)) ;;
    *,0) cat "$work/log"; fail "disturbance $i: $how, and the run ended by itself" ;;
    *) grep -qE 'Signals|signal|PMIX|ORTE|launch' "$work/log" || { cat "$work/log"; fail "disturbance $i: $how, exit code $rc"; } ;;
  esac
  compgen -G "$run/checkpoints/update-*" >/dev/null || continue
  [[ -z $damaged || $(inode_of "$damaged") != "$damaged_inode" ]] || continue # it has not come to its checkpoint
  damaged=
  "$bin/hetseq" checkpoint verify "$run" >"$work/verify" || { cat "$work/verify"; fail "disturbance $i: $how left a damaged checkpoint"; }
  now=$(newest)
  ((now >= last)) || fail "disturbance $i: $how took back update $last to $now"
  last=$now
  ((RANDOM % 6)) || damage_newest
done
((last > 0)) || fail "nothing was ever saved"

timeout 900 mpirun -np 2 "$bin/hetseq" train "${options[@]}" --max-update "$last" --save-dir "$work/alone" >"$work/log" 2>&1 ||
  { cat "$work/log"; fail "the run that was left alone"; }
"$bin/compare_models" "$run/checkpoints/update-$(printf %08d "$last")/model.safetensors" "$work/alone/model.safetensors" "$tolerance" ||
  fail "the parameters differ after $((i - 1)) disturbances"
echo "$((i - 1)) disturbances, $last updates as$layouts, $kills kills, $stops stops, $removals times without config.cfg, $refused second jobs, $damages damaged checkpoints: the parameters of a run that was left alone"
