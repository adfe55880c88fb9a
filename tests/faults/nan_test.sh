#!/usr/bin/env bash
# Gradients of one rank that are not numbers are skipped by all, counted, and named with their samples; training gives up
# after --max-skips of them.
source "$(dirname "$0")/../end_to_end/common.sh"
make_images
train=("$bin/failing_model" train --task mnist --model failing --data "$work/data/train*.h5" --max-sentences 8
  --max-update 12 --save-dir "$work/run" --overwrite --cache-dir none)

run_ranks 1 "${train[@]}" : -np 1 env FAILING_MODEL=nan:10 "${train[@]}" : -np 1 "${train[@]}"
expect_ok 'three updates without numbers'
(($(grep -c 'skipped, its loss or gradient is not finite' "$work/log") == 3)) || { cat "$work/log"; fail 'not three skips'; }
(($(grep -cE '\[rank 1 on .*\] update 1[0-2]: the gradient is not finite in the micro-batch with samples [0-9, ]+' "$work/log") == 3)) ||
  { cat "$work/log"; fail 'the samples are not named'; }
! grep -qE '\[rank [02] on .*not finite' "$work/log" || { cat "$work/log"; fail 'other ranks are blamed'; }
[[ $(json "$work/run/summary.json" skipped) == 3 ]] || fail 'the skips are not counted'

begin=$(date +%s)
run_ranks 1 "${train[@]}" --max-skips 5 : -np 1 env FAILING_MODEL=nan:3 "${train[@]}" --max-skips 5 : -np 1 "${train[@]}" --max-skips 5
expect_error 65 '5 updates in a row had a loss or gradient that is not finite'
echo "given up after $(($(date +%s) - begin)) s"
