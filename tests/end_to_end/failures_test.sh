#!/usr/bin/env bash
# A rank that throws or dies in the middle of training ends the job, long before any deadline of a collective (half an
# hour), and says who it was.
source "$(dirname "$0")/common.sh"
make_some_images 300 200
# Buckets of 1 KiB: the output layer's leaves while the hidden layer's gradients are still computed.
train=("$bin/failing_model" train --task mnist --save-minutes 0 --model failing --data "$work/data/train*.h5" --max-sentences 8
  --max-update 20 --bucket-mb 0.001)

# run_until_failure COMMAND...: as run_ranks, with a limit that no collective's deadline would meet.
run_until_failure() {
  rc=0
  timeout 60 mpirun "$@" >"$work/log" 2>&1 || rc=$?
  ((rc != 124)) || { cat "$work/log"; fail "still running after a minute"; }
}
expect_count() {
  (($(grep -cE -- "$2" "$work/log") == $1)) || { cat "$work/log"; fail "expected $1 time(s): $2"; }
}

run_until_failure -np 3 "${train[@]}"
expect_ok "without a failure"

for failure in forward:1 backward:5; do
  run_until_failure -np 1 "${train[@]}" : -np 1 env FAILING_MODEL=$failure "${train[@]}" : -np 1 "${train[@]}"
  expect_error 70 "the model failed on purpose"
  expect_count 1 "\[rank 1 on .*\].*the model failed on purpose"
done

# Two of three, and all of them: each with a bucket under way.
run_until_failure -np 1 "${train[@]}" : -np 2 env FAILING_MODEL=backward:5 "${train[@]}"
((rc == 70)) || { cat "$work/log"; fail "exit code $rc after two ranks threw"; }
expect_count 2 "\[rank [12] on .*\].*the model failed on purpose"
for place in forward backward; do
  run_until_failure -np 3 env FAILING_MODEL=$place:5 "${train[@]}"
  expect_error 70 "the model failed on purpose"
done

# With the same words, but the bucket that two of them started never leaves the first: nobody may wait for it.
run_until_failure -np 1 env FAILING_MODEL=forward:5 "${train[@]}" : -np 2 env FAILING_MODEL=backward:5 "${train[@]}"
expect_error 70 "the model failed on purpose"

run_until_failure -np 1 "${train[@]}" : -np 1 env FAILING_MODEL=kill:5 "${train[@]}" : -np 1 "${train[@]}"
((rc != 0)) || { cat "$work/log"; fail "exit code 0 after a rank was killed"; }
expect_count 1 'signal 9'

# A label of 200 in the validation data is met in the middle of training.
cp -r "$work/idx" "$work/bad_idx"
printf '\310' | dd of="$work/bad_idx/t10k-labels-idx1-ubyte" bs=1 seek=$((8 + 117)) conv=notrunc status=none
"$bin/hetseq" prepare images "$work"/bad_idx/t10k* --output "$work/bad" >"$work/log" 2>&1 || { cat "$work/log"; fail prepare; }
bad=$(echo "$work"/bad/t10k*.h5)
run_until_failure -np 2 "$bin/hetseq" train --task mnist --data "$work/data/train*.h5" --valid-data "$bad" \
  --max-sentences 8 --max-update 4 --valid-interval 2 --log-interval 1 --save-dir "$work/run"
expect_error 65 "$bad"
expect_count 1 'update 2/4'
grep -q '200' "$work/log" || { cat "$work/log"; fail "the value is not named"; }
[[ ! -e $work/run/model.safetensors ]] || fail "a model was left behind"
