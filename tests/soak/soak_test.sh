#!/usr/bin/env bash
# soak_test.sh BINARY_DIR [DISTURBANCES [SEED]]: a run that is killed, stopped and re-sized at random, again and again,
# keeps every checkpoint it has and ends with the parameters of a run that was left alone. A disturbance takes 2 to 4 s.
source "$(dirname "$0")/../end_to_end/common.sh"
disturbances=${2:-8}
seed=${3:-$RANDOM}
RANDOM=$seed
echo "$disturbances disturbances, seed $seed"
make_images
options=(--task mnist --data "$work/data/train*.h5" --max-sentences 4 --batch-size 8 --seed 3 --precision fp64 --lr 0.1
  --balance declared --threads 1 --log-interval 50 --save-interval 0 --keep-last 2)
run=$work/run
mkdir "$run"
last=0 stops=0 kills=0 sizes=''

newest() { "$bin/hetseq" checkpoint list "$run" --json | python3 -c 'import json,sys; print(json.load(sys.stdin)[0]["update"])'; }
# In hundredths of a second.
pause() { sleep "$(printf '%d.%02d' $(($1 / 100)) $(($1 % 100)))"; }
mpirun_of() { pgrep -P "$1" -x mpirun; }
random_rank() { pgrep -P "$(mpirun_of "$1")" -x hetseq | shuf -n 1 --random-source=<(yes "$RANDOM"); }

disturb() {
  local launcher=$1 victim
  case $((RANDOM % 6)) in
    0 | 1 | 2) victim=$(random_rank "$launcher") && kill -9 "$victim" && how=killed ;;
    3) victim=$(mpirun_of "$launcher") && kill -USR1 "$victim" && how=signalled ;;
    4) touch "$run/STOP" && how=stopped ;;
    5) victim=$(mpirun_of "$launcher") && kill -TERM "$victim" && how=terminated ;;
  esac
}

for ((i = 1; i <= disturbances; ++i)); do
  ranks=$((RANDOM % 3 + 1))
  sizes+=" $ranks"
  timeout 120 mpirun -np $ranks "$bin/hetseq" train "${options[@]}" --max-update 1000000 --save-dir "$run" \
    --save-interval-updates $((RANDOM % 9 + 1)) >"$work/log" 2>&1 &
  launcher=$!
  pause $((RANDOM % 220 + 60))
  how=nothing
  until disturb "$launcher" || ! kill -0 "$launcher" 2>/dev/null; do sleep 0.1; done
  rc=0
  wait "$launcher" || rc=$?
  case $how,$rc in
    signalled,75 | stopped,75) stops=$((stops + 1)) ;;
    killed,137 | terminated,*) kills=$((kills + 1)) ;;
    *,0) cat "$work/log"; fail "disturbance $i: $how, and the run ended by itself" ;;
    *) grep -qE 'Signals|signal|PMIX|ORTE|launch' "$work/log" || { cat "$work/log"; fail "disturbance $i: $how, exit code $rc"; } ;;
  esac
  compgen -G "$run/checkpoints/update-*" >/dev/null || continue
  "$bin/hetseq" checkpoint verify "$run" >"$work/verify" || { cat "$work/verify"; fail "disturbance $i: $how left a damaged checkpoint"; }
  now=$(newest)
  ((now >= last)) || fail "disturbance $i: $how took back update $last to $now"
  last=$now
done
((last > 0)) || fail "nothing was ever saved"

timeout 900 mpirun -np 2 "$bin/hetseq" train "${options[@]}" --max-update "$last" --save-dir "$work/alone" >"$work/log" 2>&1 ||
  { cat "$work/log"; fail "the run that was left alone"; }
"$bin/compare_models" "$run/checkpoints/update-$(printf %08d "$last")/model.safetensors" "$work/alone/model.safetensors" 1e-9 ||
  fail "the parameters differ after $disturbances disturbances"
echo "$last updates on$sizes ranks, $kills kills and $stops stops: the parameters of a run that was left alone"
