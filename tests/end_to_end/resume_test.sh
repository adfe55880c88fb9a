#!/usr/bin/env bash
# A run that is stopped, killed and continued ends as one that was left alone.
source "$(dirname "$0")/common.sh"
make_some_images 150 50
options=(--task mnist --precision fp64 --data "$work/data/train*.h5" --valid-data "$work/data/t10k*.h5" --max-sentences 2 --seed 3
  --balance declared --batch-size 4 --log-interval 5 --max-epoch 4)

# start RUN RANKS OPTION...: in the background, its launcher in $launcher; slow, so that it is still there when something
# happens to it.
start() {
  local run=$1 ranks=$2; shift 2
  : >"$work/log" # wait_for must not find the last command's words
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
expect_error 75 "exit code 75 says that the run stopped as planned"
[[ $(json "$work/cut/summary.json" status) == stopped ]] || fail "status"
stopped_at=$(json "$work/cut/summary.json" updates)
((stopped_at < 152)) || fail "stopped at the end"

# By the file STOP, which goes with the stop.
start cut 2
wait_for 'continues from'
touch "$work/cut/STOP"
finish
expect_error 75 "asked to by the file STOP"
[[ ! -e $work/cut/STOP ]] || fail "STOP is still there"
stopped_at=$(json "$work/cut/summary.json" updates)

# A stop before its first update: nothing is written again.
newest=$work/cut/checkpoints/update-$(printf %08d "$stopped_at")
held=$(stat -c %i "$newest/MANIFEST.json")
touch "$work/cut/STOP"
train cut 2
expect_error 75 "asked to by the file STOP"
[[ $(json "$work/cut/summary.json" updates) == "$stopped_at" ]] || fail "did not stop before its first update"
[[ $(stat -c %i "$newest/MANIFEST.json") == "$held" ]] || fail "saved again what was there"

# Killed while it replaced its only checkpoint: readers find the former one, who continues gives it its name.
mkdir "$work/others"
find "$work/cut/checkpoints" -mindepth 1 -maxdepth 1 ! -path "$newest" -exec mv -t "$work/others" {} +
aside=$(dirname "$newest")/.replaced-$(basename "$newest")
mv "$newest" "$aside"
"$bin/hetseq" checkpoint verify "$work/cut" >"$work/log" || { cat "$work/log"; fail "not found by a reader"; }
train cut 2 --dry-run
expect_ok "dry run"
[[ -e $aside && ! -e $newest ]] || fail "a reader renamed it"
touch "$work/cut/STOP"
train cut 2
expect_error 75 "asked to by the file STOP"
grep -q "continues from $newest," "$work/log" || { cat "$work/log"; fail "did not continue from the former checkpoint"; }
[[ ! -e $aside && $(stat -c %i "$newest/MANIFEST.json") == "$held" ]] || fail "was not put back"
find "$work/others" -mindepth 1 -maxdepth 1 -exec mv -t "$work/cut/checkpoints" {} +

# By kill -9 of a rank, wherever it is; what was being written counts for nothing.
start cut 2 --save-interval-updates 2
wait_for "update $(((stopped_at / 5 + 3) * 5))/"
ranks_of_launcher | tail -1 | xargs kill -9
finish
((rc != 0 && rc != 75)) || fail "exit code $rc of a killed run"
rm -rf "$work/copy"
cp -r "$work/cut" "$work/copy"

# What continuing would do, and that it leaves everything as it is.
find "$work/cut" -type f -exec cksum {} + | sort >"$work/before"
train cut 2 --dry-run --json
expect_ok "a dry run"
sed -n '/^{/,/^}/{/^[{} ]/p}' "$work/log" >"$work/plan.json"
[[ $(json "$work/plan.json" action) == continue ]] || fail "the plan does not continue"
[[ $(json "$work/plan.json" checkpoint) == "$work/cut/checkpoints/update-"* ]] || fail "the plan names no checkpoint"
[[ $(json "$work/plan.json" updates) == 152 ]] || fail "the plan's updates"
python3 - "$work/plan.json" <<'EOF' || { cat "$work/plan.json"; fail "rate, time or memory of the plan"; }
import json, sys
plan = json.load(open(sys.argv[1]))
left = plan["updates"] - plan["updates_done"]
assert 0 < plan["updates_done"] < 152 and 0 < plan["tried_updates"] <= left
assert plan["samples_per_second"] > 0 and plan["seconds"] == left * plan["step_ms"]["median"] / 1000
assert [r["share"] for r in plan["ranks"]] == [2, 2] and all(0 < r["peak_memory_mb"] < r["memory_mb"] for r in plan["ranks"])
EOF
grep -q "would continue from $work/cut/checkpoints/update-.* of 152)" "$work/log" || { cat "$work/log"; fail "it does not say from where"; }
find "$work/cut" -type f -exec cksum {} + | sort | cmp - "$work/before" || fail "a dry run wrote"

train cut 2
expect_ok continued
grep -q 'continues from .*update-' "$work/log" || fail "did not continue"
cmp "$work/cut/model.safetensors" "$work/whole/model.safetensors" || fail "the continued run differs"
cmp "$work/cut/best.safetensors" "$work/whole/best.safetensors" || fail "its best model differs"
[[ $(losses "$work/cut/metrics.jsonl") == "$(losses "$work/whole/metrics.jsonl")" ]] || fail "its losses differ"
for file in model.safetensors optimizer-00001-of-00001.safetensors; do
  cmp "$work"/{cut,whole}/checkpoints/update-00000152/"$file" || fail "equal states have unequal bytes"
done

train cut 2 --dry-run --json
expect_ok "a dry run of a finished run"
sed -n '/^{/,/^}/{/^[{} ]/p}' "$work/log" >"$work/plan.json"
[[ $(json "$work/plan.json" action) == nothing ]] || fail "the plan of a finished run"

# On other ranks: the same but for rounding; the batch stays what it was.
train copy 3
expect_ok "on three ranks"
"$bin/compare_models" "$work/copy/model.safetensors" "$work/whole/model.safetensors" 1e-12 || fail "three ranks differ"
[[ $(json "$work/copy/summary.json" samples) == 600 ]] || fail "samples"

# The newest is damaged: named, and the one before it taken.
truncate -s -1 "$work/cut/checkpoints/update-00000152/model.safetensors"
train cut 2
expect_ok "after damage"
grep -q 'update-00000152 cannot be used: .*model.safetensors has' "$work/log" || { cat "$work/log"; fail "damage is not named"; }
grep -q 'continues from .*update-00000114' "$work/log" || fail "the one before is not taken"
cmp "$work/cut/model.safetensors" "$work/whole/model.safetensors" || fail "differs after damage"
truncate -s -1 "$work"/cut/checkpoints/*/state.json
train cut 2
expect_error 65 "none of the 3 checkpoints can be used"

# What a run keeps to its end, and another run that begins where it ended.
train whole 2 --max-epoch 5 --lr 0.5
expect_error 78 "--reset-lr-scheduler"
train whole 2 --max-epoch 5 --optimizer sgd
expect_error 78 "--reset-optimizer"
train other 2 --max-epoch 5 --restore-file "$work/whole" --lr 0.0005 --reset-lr-scheduler
expect_ok "another schedule"
[[ $(json "$work/other/summary.json" updates_since_start) == 38 ]] || fail "did not go on from the checkpoint"
train fresh 2 --max-epoch 1 --restore-file "$work/whole" --reset-lr-scheduler --reset-optimizer --reset-position
expect_ok "parameters alone"
[[ $(json "$work/fresh/summary.json" updates) == 38 ]] || fail "did not begin anew"
train fresh 2 --reset-optimizer
expect_error 78 "there is nothing to reset"
train none 2 --resume must
expect_error 66 "holds no checkpoint"

# The schedule counts its own updates and epochs: 38 updates an epoch, and one more.
lr_of() { python3 -c 'import json,sys
print(*(x["lr"] for x in map(json.loads, open(sys.argv[1])) if x["kind"] == "train"))' "$work/$1/metrics.jsonl"; }
steps=(--optimizer sgd --lr-scheduler step --lr-shrink 0.5 --log-interval 38)
train steps 1 --max-epoch 3 --lr 0.004 "${steps[@]}"
expect_ok steps
[[ $(lr_of steps) == '0.004 0.002 0.001' ]] || fail "the rates of three epochs are $(lr_of steps)"
train slower 1 --max-epoch 5 --lr 0.008 "${steps[@]}" --restore-file "$work/steps" --reset-lr-scheduler
expect_ok "another rate"
[[ $(lr_of slower) == '0.008 0.004' ]] || fail "another rate begins with $(lr_of slower)"
train again 1 --max-epoch 2 --lr 0.004 "${steps[@]}" --restore-file "$work/steps" --reset-position
expect_ok "another order"
[[ $(lr_of again) == '0.0005 0.00025' ]] || fail "another order has the rates $(lr_of again)"

# In time: with room for what is left to do.
train limited 2 --max-epoch 1000 --time-limit 00:00:05
expect_error 75 "asked to by the time limit"
train patient 1 --max-epoch 1000 --patience 2 --valid-interval 3 --lr 1e-30
expect_ok patience
grep -q 'no longer improves' "$work/log" || fail "did not end early"

# The best by another measure, and one that the model does not have.
train accurate 2 --max-epoch 3 --best-by accuracy:max
expect_ok "best by accuracy"
grep -q '(best accuracy)' "$work/log" || { cat "$work/log"; fail "the measure is not named"; }
python3 -c 'import json, sys
valid = [x for x in map(json.loads, open(sys.argv[1])) if x["kind"] == "valid"]
best = 0
for x in valid:
    assert x["best"] == (x["accuracy"] > best) and x["best_by"] == "accuracy:max", x
    best = max(best, x["accuracy"])' "$work/accurate/metrics.jsonl" || fail "the best is another"
train accurate 2 --max-epoch 4 --best-by loss:min
expect_ok "continued by another measure"
train none 2 --best-by bleu:max
expect_error 78 "its names are loss, "

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
grep -q 'update-00000152 *4 .*best' "$work/log" || { cat "$work/log"; fail list; }
(($(grep -c best "$work/log") == 1)) || { cat "$work/log"; fail "several are the best"; }
"$bin/hetseq" checkpoint list "$work/whole" --json >"$work/log"
grep -q '"valid_loss": [0-9]' "$work/log" || { cat "$work/log"; fail "no validation loss in the list"; }
"$bin/hetseq" checkpoint verify "$work/whole" >"$work/log" || fail verify
rc=0; "$bin/hetseq" checkpoint verify "$work/cut" >"$work/log" || rc=$?
((rc == 65)) || fail "damage passed the verification"
"$bin/hetseq" checkpoint inspect "$work/whole" >"$work/log" || fail inspect
grep -q 'square_avg/' "$work/log" || fail "no tensor of the optimizer"
"$bin/hetseq" checkpoint average "$work/whole" --last 1 --output "$work/mean.safetensors" >"$work/log" || fail average
"$bin/compare_models" "$work/mean.safetensors" "$work/whole/model.safetensors" 0 || fail "the mean of one"
"$bin/hetseq" checkpoint average "$work/whole" --output "$work/mean.safetensors" >"$work/log" || fail average
rc=0; "$bin/compare_models" "$work/mean.safetensors" "$work/whole/model.safetensors" 0 || rc=$?
((rc == 1)) || fail "the mean of three, exit code $rc"

# A trial of a run for some updates: its schedule stays, and the continued run is the undisturbed one.
trial=("$bin/hetseq" train --task mnist --precision fp64 --data "$work/data/train*.h5" --max-sentences 2 --max-update 12
  --lr-scheduler cosine --warmup-updates 8)
run_ranks 1 "${trial[@]}" --save-dir "$work/undisturbed"
expect_ok undisturbed
run_ranks 1 "${trial[@]}" --save-dir "$work/tried" --stop-after 5
expect_error 75 "asked to by --stop-after"
expect_error 75 "checkpoint: $work/tried/checkpoints/update-00000005; the same command continues the run"
run_ranks 1 "${trial[@]}" --save-dir "$work/tried"
expect_ok "after the trial"
tail -n 1 "$work/log" | grep -q "model: $work/tried/model.safetensors$" || { cat "$work/log"; fail "the last line names no model"; }
"$bin/compare_models" "$work/tried/model.safetensors" "$work/undisturbed/model.safetensors" 0 || fail "the trial changed the run"
