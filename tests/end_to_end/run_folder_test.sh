#!/usr/bin/env bash
# A run's folder from which something was removed, and one into which two jobs want to train.
source "$(dirname "$0")/common.sh"
make_images
options=(--task mnist --save-minutes 0 --precision fp64 --data "$work/data/train*.h5" --max-sentences 8 --batch-size 16 --seed 3 --lr 0.1
  --balance declared --threads 1 --log-interval 1 --save-interval-updates 2 --save-interval 0)
train() { local run=$1; shift; run_ranks 1 "$bin/hetseq" train "${options[@]}" --save-dir "$work/$run" "$@"; }
checkpoint() { printf '%s/checkpoints/update-%08d' "$work/$1" "$2"; }
# start RUN OPTION...: slowly, in the background. Its process is $job, its log $work/log.RUN.
start() {
  local run=$1; shift
  HETSEQ_FAULT='0:loading:*:stall=0.2' timeout 100 "$bin/hetseq_faulty" train "${options[@]}" --save-dir "$work/$run" "$@" >"$work/log.$run" 2>&1 &
  job=$!
}
# wait_for FILE TEXT
wait_for() {
  local tries
  for ((tries = 0; tries < 1200; ++tries)); do
    ! grep -qs -- "$2" "$1" || return 0
    sleep 0.05
  done
  cat "$1"; fail "waited in vain for $2"
}
ends() { rc=0; wait "$job" || rc=$?; cp "$work/log.$1" "$work/log"; }

train whole --max-update 8
expect_ok whole
train run --max-update 6
expect_ok 'the first part'
cp -r "$work/run" "$work/removed"
mkdir "$work/copy"
cp -r "$work/run/checkpoints" "$work/copy"

# Without its configuration, or from the checkpoints alone, it goes on; refused where it should not.
rm "$work/run/config.cfg"
train run --max-update 8 --resume never
expect_error 78 'checkpoints are there'
train run --max-update 8 --restore-file "$work/whole"
expect_ok 'without config.cfg'
for run in run copy; do
  [[ $run == run ]] || train "$run" --max-update 8
  grep -q "continues from $(checkpoint $run 6)," "$work/log" || { cat "$work/log"; fail "$run: did not continue"; }
  [[ -s $work/$run/config.cfg && ! -e $work/$run/lease.json ]] || fail "$run: config.cfg or a lease"
  "$bin/compare_models" "$work/$run/model.safetensors" "$work/whole/model.safetensors" 0 || fail "$run differs"
done

# Results whose checkpoints are gone.
rm -r "$work/removed/checkpoints" "$work/removed/summary.json"
cp "$work/removed/metrics.jsonl" "$work/metrics"
for how in '' --dry-run; do
  train removed --max-update 8 $how
  expect_error 78 'metrics.jsonl is there, but no checkpoint'
done
cmp "$work/metrics" "$work/removed/metrics.jsonl" || fail 'the old metrics are gone'

# A second job is sent away while the first one goes on; parts that somebody removes meanwhile are told.
start shared --max-update 100000
wait_for "$work/log.shared" 'update 3/'
rm "$work/shared/config.cfg" "$work/shared"/tensorboard/*
mv "$work/shared/metrics.jsonl" "$work/shared/early"
rm -rf "$(checkpoint shared 2)"
until [[ -e $(checkpoint shared 4) || ! -e /proc/$job ]]; do sleep 0.05; done # without any, it could not be continued
train shared --max-update 100000
expect_error 78 "$work/shared is in use (process $(pgrep -P "$job" -x hetseq_faulty) on "
touch "$work/shared/STOP"
ends shared
expect_error 75 'asked to by the file STOP'
for part in 'config.cfg from' 'events.out.*another file begins' 'metrics.jsonl or a part' 'checkpoints from .* of update 2$' \
  'written anew: config.cfg' 'checkpoints while the run went on: of update 2$' 'lacks lines'; do
  grep -q "$part" "$work/log" || { cat "$work/log"; fail "not said: $part"; }
done
[[ -s $work/shared/config.cfg ]] || fail 'config.cfg is not there again'
python3 -c 'import json, sys
updates = [x["update"] for path in sys.argv[1:] for x in map(json.loads, open(path)) if x["kind"] == "train"]
assert updates == list(range(1, len(updates) + 1)), updates' "$work/shared/early" "$work/shared/metrics.jsonl" || fail 'the metrics of two jobs'

# A job whose folder another one took writes nothing any more.
start taken --max-update 100000
wait_for "$work/log.taken" 'update 5/'
sed 's/"token":"[^"]*"/"token":"another"/; s/"pid":[0-9]*/"pid":77/' "$work/taken/lease.json" >"$work/taken/other"
mv "$work/taken/other" "$work/taken/lease.json"
ends taken
((rc == 78)) || { cat "$work/log"; fail "exit code $rc of a job that lost its folder"; }
grep -q "error $work/taken was taken by process 77 on" "$work/log" || { cat "$work/log"; fail 'not said who took the folder'; }
grep -q '"token":"another"' "$work/taken/lease.json" || fail 'the lease of the other job is gone'
