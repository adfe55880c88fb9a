#!/usr/bin/env bash
# A run that is stopped, killed and continued ends as one that was left alone.
source "$(dirname "$0")/common.sh"
make_images
options=(--task mnist --data "$work/data/train*.h5" --valid-data "$work/data/t10k*.h5" --max-sentences 8 --seed 3
  --balance declared --batch-size 16 --log-interval 5 --max-epoch 8)

# start RUN RANKS OPTION...: in the background, its launcher in $launcher; slow, so that it is still there when something
# happens to it.
start() {
  local run=$1 ranks=$2; shift 2
  HETSEQ_FAULT='0:loading:*:stall=0.03' timeout 200 mpirun -np "$ranks" "$bin/hetseq_faulty" train "${options[@]}" --save-dir "$work/$run" "$@" >"$work/log" 2>&1 &
  launcher=$!
}
# wait_for TEXT: until the log has it.
wait_for() {
  local tries
  for ((tries = 0; tries < 1200; ++tries)); do
    ! grep -q -- "$1" "$work/log" || return 0
    sleep 0.05
  done
  cat "$work/log"; fail "waited in vain for $1"
}
finish() { rc=0; wait "$launcher" || rc=$?; }
train() { local run=$1 ranks=$2; shift 2; run_ranks "$ranks" "$bin/hetseq" train "${options[@]}" --save-dir "$work/$run" "$@"; }
ranks_of_launcher() { pgrep -P "$(pgrep -P "$launcher" -x mpirun)" hetseq; }
losses() {
  python3 -c 'import json,sys
print([(x["kind"], x["update"], x["loss"]) for x in map(json.loads, open(sys.argv[1])) if x["kind"] != "event"])' "$1"
}

train whole 2
expect_ok whole

# By a signal, which mpirun and a scheduler may both deliver.
start cut 2
wait_for 'update 5/'
kill -USR1 "$(pgrep -P "$launcher" -x mpirun)"
sleep 0.02
ranks_of_launcher | xargs --no-run-if-empty kill -USR1 || true # they may be gone by now
finish
expect_error 75 "asked to by a signal"
[[ $(json "$work/cut/summary.json" status) == stopped ]] || fail "status"
stopped_at=$(json "$work/cut/summary.json" updates)
((stopped_at < 304)) || fail "stopped at the end"

# By the file STOP, which goes with the stop.
start cut 2
wait_for 'continues from'
touch "$work/cut/STOP"
finish
expect_error 75 "asked to by the file STOP"
[[ ! -e $work/cut/STOP ]] || fail "STOP is still there"
stopped_at=$(json "$work/cut/summary.json" updates)

# By kill -9 of a rank, wherever it is; what was being written counts for nothing.
start cut 2 --save-interval-updates 2
wait_for "update $(((stopped_at / 5 + 3) * 5))/"
ranks_of_launcher | tail -1 | xargs kill -9
finish
((rc != 0 && rc != 75)) || fail "exit code $rc of a killed run"
rm -rf "$work/copy"
cp -r "$work/cut" "$work/copy"

train cut 2
expect_ok continued
grep -q 'continues from .*update-' "$work/log" || fail "did not continue"
cmp "$work/cut/model.safetensors" "$work/whole/model.safetensors" || fail "the continued run differs"
cmp "$work/cut/best.safetensors" "$work/whole/best.safetensors" || fail "its best model differs"
[[ $(losses "$work/cut/metrics.jsonl") == "$(losses "$work/whole/metrics.jsonl")" ]] || fail "its losses differ"
for file in model.safetensors optimizer-00001-of-00001.safetensors; do
  cmp "$work"/{cut,whole}/checkpoints/update-00000304/"$file" || fail "equal states have unequal bytes"
done

# On other ranks: the same but for rounding; the batch stays what it was.
train copy 3
expect_ok "on three ranks"
"$bin/compare_models" "$work/copy/model.safetensors" "$work/whole/model.safetensors" 1e-3 || fail "three ranks differ"
[[ $(json "$work/copy/summary.json" samples) == 4800 ]] || fail "samples"

# The newest is damaged: named, and the one before it taken.
truncate -s -1 "$work/cut/checkpoints/update-00000304/model.safetensors"
train cut 2
expect_ok "after damage"
grep -q 'update-00000304 cannot be used: .*model.safetensors has' "$work/log" || { cat "$work/log"; fail "damage is not named"; }
grep -q 'continues from .*update-00000266' "$work/log" || fail "the one before is not taken"
cmp "$work/cut/model.safetensors" "$work/whole/model.safetensors" || fail "differs after damage"
truncate -s -1 "$work"/cut/checkpoints/*/state.json
train cut 2
expect_error 65 "none of the 3 checkpoints can be used"

# What a run keeps to its end, and another run that begins where it ended.
train whole 2 --max-epoch 9 --lr 0.5
expect_error 78 "--reset-lr-scheduler"
train whole 2 --max-epoch 9 --optimizer sgd
expect_error 78 "--reset-optimizer"
train other 2 --max-epoch 9 --restore-file "$work/whole" --lr 0.0005 --reset-lr-scheduler
expect_ok "another schedule"
[[ $(json "$work/other/summary.json" updates_since_start) == 38 ]] || fail "did not go on from the checkpoint"
train fresh 2 --max-epoch 1 --restore-file "$work/whole" --reset-lr-scheduler --reset-optimizer --reset-position
expect_ok "parameters alone"
[[ $(json "$work/fresh/summary.json" updates) == 38 ]] || fail "did not begin anew"
train fresh 2 --reset-optimizer
expect_error 78 "there is nothing to reset"
train none 2 --resume must
expect_error 66 "holds no checkpoint"

# In time: with room for what is left to do.
train limited 2 --max-epoch 1000 --time-limit 00:00:05
expect_error 75 "asked to by the time limit"
train patient 1 --max-epoch 1000 --patience 2 --valid-interval 3 --lr 0.00000001
expect_ok patience
grep -q 'no longer improves' "$work/log" || fail "did not end early"

# At a signal that asks for a checkpoint it saves and goes on; what the ranks cost is kept with it.
start saved 2 --max-epoch 1000 --balance auto --cache-dir none --save-interval 0 --save-minutes 0 --stop-signals USR1 \
  --checkpoint-signals USR2
wait_for 'update 5/'
kill -USR2 "$(pgrep -P "$launcher" -x mpirun)"
for ((tries = 0; tries < 400; ++tries)); do
  ! compgen -G "$work/saved/checkpoints/update-*" >/dev/null || break
  sleep 0.05
done
((tries < 400)) || { cat "$work/log"; fail "no checkpoint at the signal"; }
kill -USR1 "$(pgrep -P "$launcher" -x mpirun)"
finish
expect_error 75 "asked to by a signal"
start saved 2 --max-epoch 1000 --balance auto --cache-dir none
wait_for 'continues from'
touch "$work/saved/STOP"
finish
expect_error 75 "asked to by the file STOP"
! grep -q 'measuring the speed' "$work/log" || fail "measured what the checkpoint knew"

# Looked at.
"$bin/hetseq" checkpoint list "$work/whole" >"$work/log"
grep -q 'update-00000304 *8 .*best' "$work/log" || { cat "$work/log"; fail list; }
"$bin/hetseq" checkpoint verify "$work/whole" >"$work/log" || fail verify
rc=0; "$bin/hetseq" checkpoint verify "$work/cut" >"$work/log" || rc=$?
((rc == 65)) || fail "damage passed the verification"
"$bin/hetseq" checkpoint inspect "$work/whole" >"$work/log" || fail inspect
grep -q 'square_avg/' "$work/log" || fail "no tensor of the optimizer"
"$bin/hetseq" checkpoint average "$work/whole" --last 1 --output "$work/mean.safetensors" >"$work/log" || fail average
"$bin/compare_models" "$work/mean.safetensors" "$work/whole/model.safetensors" 0 || fail "the mean of one"
"$bin/hetseq" checkpoint average "$work/whole" --output "$work/mean.safetensors" >"$work/log" || fail average
! "$bin/compare_models" "$work/mean.safetensors" "$work/whole/model.safetensors" 0 || fail "the mean of three"
