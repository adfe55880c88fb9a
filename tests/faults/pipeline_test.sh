#!/usr/bin/env bash
# A stage of a pipeline that is killed or stalls in the middle of a pass ends the job in seconds, with its name: the
# others wait for its messages. The same command then continues to the parameters of an undisturbed run.
updates=10
source "$(dirname "$0")/common.sh"
train+=(--save-interval-updates 2 --virtual-workers 0+1+2 --stage-units 1+1+1 --batch-size 32)

run_ranks 3 "${train[@]}" --save-dir "$work/undisturbed"
expect_ok 'undisturbed'

run=$work/run
# The others wait for a message that is not sent, or not taken.
for fault in 0:pipeline_send:4 1:pipeline_receive:6 2:pipeline_receive:8; do
  IFS=: read -r stage point _ <<<"$fault"
  run_faulty 3 "$fault:kill" "${train[@]}" --save-dir "$run"
  ((rc == 137)) || { cat "$work/log"; fail "exit code $rc: stage $stage, $point"; }
  grep -q "rank $stage .*signal 9" "$work/log" || { cat "$work/log"; fail "stage $stage, $point: it is not named"; }
  table "SIGKILL, stage $stage, $point"
done
run_ranks 3 "${train[@]}" --save-dir "$run"
expect_ok 'continued'
grep -q 'continues from' "$work/log" || { cat "$work/log"; fail 'began anew'; }
cmp "$work/undisturbed/model.safetensors" "$run/model.safetensors" || fail 'other parameters'

run_faulty 3 "1:pipeline_receive:3:stall=60" "${train[@]}" --save-dir "$work/stalled" --stall-timeout 3
expect_block 71 'the job stalls: rank 1 on .* \(stage 1 of 3\) has been computing update 3'
table 'stall, stage 1'

run_faulty 3 "2:pipeline_send:3:throw" "${train[@]}" --save-dir "$work/thrown"
((rc != 0)) || fail 'an exception was lost'
expect_count 1 'rank 2 on .*a fault on purpose'
table 'throw, stage 2'
