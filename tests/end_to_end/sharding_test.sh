#!/usr/bin/env bash
# The optimizer's state, cut over the ranks: the same bits and the same files as a whole one, and runs that go on with
# other parts, on other ranks, and after they were killed.
source "$(dirname "$0")/common.sh"
images=74
source "$(dirname "$0")/continued_runs.sh"

# same RUN OTHER: all that their last checkpoints hold of model and optimizer, byte by byte.
same() {
  same_checkpoints "$1" "$2"
  cmp "$work/$1/model.safetensors" "$work/$2/model.safetensors" || fail "$2 does not have the model of $1"
}

options+=(--max-epoch 1 --max-sentences '0=2,1=4,2=0' --clip-norm 0.5 --weight-decay 0.01)
for optimizer in adamw lamb; do
  own=(--precision fp32 --optimizer "$optimizer")
  train "whole-$optimizer" 3 "${own[@]}"
  expect_ok "$optimizer"
  cuts=("0=3,1=0,2=1")
  [[ $optimizer == lamb ]] || cuts+=(memory "0=0,1=0,2=1")
  for parts in "${cuts[@]}"; do
    train cut 3 "${own[@]}" --shard optimizer --shard-by "$parts" --bucket-mb 0.3 --overwrite
    expect_ok "$optimizer, $parts"
    same "whole-$optimizer" cut
  done
done

# Killed on two ranks between runs on four and three, against one rank without an interruption. By SGD: Adam would make
# more of the roundings that other ranks have.
options+=(--max-sentences 2 --optimizer sgd --momentum 0.9 --lr 0.01 --save-interval-updates 5)
train one 1
expect_ok one
train many 4 --shard optimizer --shard-by 0=0,1=1,2=5,3=2 --stop-after 10
((rc == 75)) || { cat "$work/log"; fail "exit code $rc after --stop-after"; }
# What each rank's memory holds stands in the start report.
awk '/^rank +process/ {for (i = 1; i <= NF; ++i) if ($i == "state") column = i; rows = 4; next}
     rows > 0 {part[++n] = $column; --rows}
     END {exit !(n == 4 && part[1] < part[2] && part[4] > 1.5 * part[2] && part[3] > 2 * part[4])}' "$work/log" ||
  { cat "$work/log"; fail 'the parts of the state'; }
rc=0
HETSEQ_FAULT=1:all_gather:17+:kill timeout 300 mpirun -np 2 -x HETSEQ_FAULT "$bin/hetseq_faulty" train "${options[@]}" \
  --save-dir "$work/many" --shard optimizer --shard-by even >"$work/log" 2>&1 || rc=$?
((rc == 137)) || { cat "$work/log"; fail "exit code $rc of a killed rank"; }
train many 3
expect_ok 'continued'
grep -qE 'continues from .*update-000000(10|15)' "$work/log" || { cat "$work/log"; fail 'began anew'; }
"$bin/compare_models" "$work/one/model.safetensors" "$work/many/model.safetensors" 1e-12 || fail 'another model after 4, 2 and 3 ranks'

train wrong 2 --shard optimizer --shard-by 0=1,1=even
expect_error 78 "--shard-by is '1' for one rank and 'even' for another"
train wrong 2 --shard optimizer --shard-by 0
expect_error 78 'gives no rank a part'
[[ ! -e $work/wrong/checkpoints ]] || fail 'a start that failed left checkpoints'
