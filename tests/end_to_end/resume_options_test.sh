#!/usr/bin/env bash
# What a continued run keeps, what it may change, and when a run ends by itself.
source "$(dirname "$0")/common.sh"
images=74
source "$(dirname "$0")/continued_runs.sh"
options+=(--max-epoch 2)

train whole 1
expect_ok whole

# What a run keeps to its end, and another run that begins where it ended.
train whole 2 --max-epoch 3 --lr 0.5
expect_error 78 "--reset-lr-scheduler"
train whole 1 --max-epoch 3 --optimizer sgd
expect_error 78 "--reset-optimizer"
train whole 1 --max-epoch 3 --precision fp32
expect_error 78 "--init-model"
train decayed 1 --max-epoch 0 --max-update 3 --lr-scheduler cosine
expect_ok decayed
train decayed 1 --max-epoch 0 --max-update 5 --lr-scheduler cosine
expect_ok "after the decay"
grep -q 'the learning rate is 0 from update 4 on' "$work/log" || { cat "$work/log"; fail 'no warning of a rate of 0'; }
train other 1 --max-epoch 3 --restore-file "$work/whole" --lr 0.0005 --reset-lr-scheduler
expect_ok "another schedule"
[[ $(json "$work/other/summary.json" updates_since_start) == 19 ]] || fail "did not go on from the checkpoint"
train fresh 1 --max-epoch 1 --restore-file "$work/whole" --reset-lr-scheduler --reset-optimizer --reset-position
expect_ok "parameters alone"
[[ $(json "$work/fresh/summary.json" updates) == 19 ]] || fail "did not begin anew"
cp -r "$work/whole" "$work/damaged"
for file in "$work"/damaged/checkpoints/*/optimizer-*; do printf damage | dd of="$file" bs=1 seek=5000 conv=notrunc status=none; done
train from-damaged 1 --max-epoch 3 --restore-file "$work/damaged"
expect_error 65 'none of the'
train from-damaged 1 --max-epoch 3 --restore-file "$work/damaged" --reset-optimizer
expect_ok "parameters of a checkpoint whose optimizer is damaged"
[[ $(json "$work/from-damaged/summary.json" updates_since_start) == 19 ]] || fail "did not go on from the damaged checkpoint"
rm -r "$work/damaged" "$work/from-damaged"
train fresh 1 --reset-optimizer
expect_error 78 "there is nothing to reset"
train none 1 --resume must
expect_error 66 "holds no checkpoint"

# The schedule counts its own updates and epochs: 19 updates an epoch, and one more.
lr_of() { python3 -c 'import json,sys
print(*(x["lr"] for x in map(json.loads, open(sys.argv[1])) if x["kind"] == "train"))' "$work/$1/metrics.jsonl"; }
steps=(--optimizer sgd --lr-scheduler step --lr-shrink 0.5 --log-interval 19)
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
export HETSEQ_FAULT='0:loading:*:stall=0.2'  # so that it waits, not computes
run_ranks 2 "$bin/hetseq_faulty" train "${options[@]}" --save-dir "$work/limited" --max-epoch 1000 --time-limit 00:00:05
unset HETSEQ_FAULT
expect_error 75 "asked to by the time limit"
train patient 1 --max-epoch 1000 --patience 2 --valid-interval 3 --lr 1e-30
expect_ok patience
grep -q 'no longer improves' "$work/log" || fail "did not end early"

# The best by another measure, and one that the model does not have.
train accurate 1 --best-by accuracy:max
expect_ok "best by accuracy"
grep -q '(best accuracy)' "$work/log" || { cat "$work/log"; fail "the measure is not named"; }
python3 -c 'import json, sys
valid = [x for x in map(json.loads, open(sys.argv[1])) if x["kind"] == "valid"]
best = 0
for x in valid:
    assert x["best"] == (x["accuracy"] > best) and x["best_by"] == "accuracy:max", x
    best = max(best, x["accuracy"])' "$work/accurate/metrics.jsonl" || fail "the best is another"
train accurate 1 --max-epoch 3 --best-by loss:min
expect_ok "continued by another measure"
train none 1 --best-by bleu:max
expect_error 78 "its names are loss, "
