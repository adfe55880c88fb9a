#!/usr/bin/env bash
# Updates whose gradients are late: a run that is killed goes on to the bytes of one that was left alone, sums that wait
# and all; other ranks, another staleness and other optimizers; and what is refused.
source "$(dirname "$0")/common.sh"
images=74
source "$(dirname "$0")/continued_runs.sh"

# same RUN OTHER: checkpoints, the model and the metrics.
same() {
  same_checkpoints "$1" "$2"
  cmp "$work/$1/model.safetensors" "$work/$2/model.safetensors" || fail "$2 does not have the model of $1"
  [[ $(losses "$1") == "$(losses "$2")" ]] || fail "$2 does not have the losses of $1"
}
losses() {
  python3 -c 'import json,sys
print([(x["kind"], x["update"], x["loss"]) for x in map(json.loads, open(sys.argv[1])) if x["kind"] != "event"])' \
    "$work/$1/metrics.jsonl"
}
# kill_at UPDATE RUN RANKS OPTION...: the last rank dies when it loads the share of that update.
kill_at() {
  local update=$1 run=$2 ranks=$3; shift 3
  rc=0
  HETSEQ_FAULT=$((ranks - 1)):loading:$update:kill timeout 300 mpirun -np "$ranks" -x HETSEQ_FAULT "$bin/hetseq_faulty" \
    train "${options[@]}" --save-dir "$work/$run" "$@" >"$work/log" 2>&1 || rc=$?
  ((rc == 137)) || { cat "$work/log"; fail "exit code $rc of a killed rank"; }
}

options+=(--max-epoch 1 --clip-norm 0.5 --weight-decay 0.01 --optimizer sgd --momentum 0.9 --lr 0.01 --valid-interval 7
  --save-interval-updates 3 --keep-last 0)
for staleness in 1 2; do
  train "whole-$staleness" 2 --staleness "$staleness"
  expect_ok "staleness $staleness"
done
! cmp -s "$work/whole-1/model.safetensors" "$work/whole-2/model.safetensors" || fail "nothing was late"
kill_at 14 cut 2 --staleness 2
ls "$work/cut/checkpoints/update-00000006"/pending-2-* >/dev/null || { ls "$work/cut/checkpoints"/*; fail 'no sums that wait'; }
"$bin/hetseq" checkpoint verify "$work/cut" >"$work/log" || { cat "$work/log"; fail 'verify'; }
cp -r "$work/cut" "$work/fewer"
train cut 2 --staleness 2
expect_ok 'continued'
grep -q 'continues from .*update-000000' "$work/log" || { cat "$work/log"; fail 'began anew'; }
same whole-2 cut
! ls "$work/cut"/checkpoints/update-00000019/pending-* 2>/dev/null || fail 'the end left sums'
grep -q 'gradients' "$work/log" || { cat "$work/log"; fail 'no memory of gradients'; }

# With another staleness it goes on; what waits is applied first.
train fewer 2
expect_ok 'a run that has no staleness any more'
[[ $(json "$work/fewer/summary.json" updates) == 19 ]] || fail 'updates of the run with another staleness'

# Gradients that are sent in 16 bits; a stop by --stop-after, and one before the first update of a start.
narrow=(--staleness 2 --precision fp32 --reduce-precision bf16)
train narrow 2 "${narrow[@]}"
expect_ok 'sums of 16 bits'
mkdir "$work/stopped"
train stopped 2 "${narrow[@]}" --stop-after 8
((rc == 75)) || { cat "$work/log"; fail "exit code $rc after --stop-after"; }
touch "$work/stopped/STOP"
train stopped 2 "${narrow[@]}"
expect_error 75 'asked to by the file STOP'
train stopped 2 "${narrow[@]}"
expect_ok 'continued after two stops'
same narrow stopped

# On other ranks: the same but for rounding.
kill_at 14 moved 3 --staleness 1
train moved 1 --staleness 1
expect_ok 'on one rank'
"$bin/compare_models" "$work/moved/model.safetensors" "$work/whole-1/model.safetensors" 1e-12 || fail 'another model on one rank'

# Into another run, whose optimizer is new: what waits is left out.
train other 1 --staleness 1 --restore-file "$work/moved/checkpoints/update-00000006" --reset-optimizer
expect_ok '--reset-optimizer'

# A pipeline.
for run in 'one 1' 'staged 2 --virtual-workers 0+1 --stage-units 2+1'; do
  # shellcheck disable=SC2086
  train $run --staleness 1 --batch-size 8 --overwrite
  expect_ok "$run"
done
same_checkpoints one staged

train wrong 1 --staleness 17
expect_error 78 "--staleness: '17'"
train wrong 2 --staleness 1 --shard optimizer
expect_error 78 '--staleness 1 with --shard optimizer'
