#!/usr/bin/env bash
# Bad input ends the job on all ranks with one message and its exit code, before any work.
source "$(dirname "$0")/common.sh"
make_some_images 200 200
train=("$bin/hetseq" train --task mnist --max-epoch 1 --save-dir "$work/run")

run_ranks 2 "${train[@]}" --data "$work/none/*.h5"
expect_error 66 "$work/none"
run_ranks 2 "${train[@]}" --data "$work/data" --max-sentence 3
expect_error 78 "did you mean --max-sentences?"
run_ranks 1 "${train[@]}" --data "$work/data" --lr fast
expect_error 78 "--lr"
run_ranks 1 "${train[@]}" --data "$work/data" --optimizer adamx
expect_error 78 "Did you mean adam?"
run_ranks 1 "${train[@]}" --data "$work/data" --optimizer sgd --momentum 1
expect_error 78 "'1' is not a number from 0 to below 1"
run_ranks 2 "${train[@]}" --data "$work/data" --max-sentences 0
expect_error 78 "no rank takes any work"
run_ranks 1 "${train[@]}" --data "$work/data" --batch-size 8 --update-freq 2
expect_error 78 "--batch-size and --update-freq"
run_ranks 1 "$bin/hetseq" train --task mnits --data "$work/data"
expect_error 78 "Did you mean mnist?"
run_ranks 1 "${train[@]}" --data "$work/data/train*.h5" --threads 5000
expect_error 78 "a rank has at most 1024"
run_ranks 1 "$bin/hetseq" train --task mnist --batching translation --data "$work/data/train*.h5" --max-update 1
expect_error 78 "the batching takes a field that the dataset does not have (the dataset's are images, labels)"
# What is typed for another part is no error, and not silent.
run_ranks 1 "$bin/hetseq" train --task mnist --data "$work/data/train*.h5" --max-update 1 --momentum 0.5
expect_ok "an option of another optimizer"
grep -q -- "--momentum has no effect (it belongs to --optimizer sgd; --optimizer is 'adadelta')" "$work/log" ||
  { cat "$work/log"; fail "no word of --momentum"; }
# The same fault has the same code in a file.
printf 'task = mnist\nmax-sentence = 3\n' >"$work/wrong.cfg"
run_ranks 1 "$bin/hetseq" train "$work/wrong.cfg"
expect_error 78 "did you mean --max-sentences?"
run_ranks 1 "${train[@]}" --data "$work/data/train*.h5" --save-dir "$work/wrong.cfg"
expect_error 78 "$work/wrong.cfg is a file, not a folder"
for command in evaluate translate; do
  run_ranks 1 "$bin/hetseq" "$command" "$work/no-run"
  expect_error 66 "there is no folder $work/no-run"
done
run_ranks 1 "$bin/hetseq" train "$work/none.cfg"
expect_error 66 "$work/none.cfg"
run_ranks 1 "${train[@]}" --data "$work/data" --seed 1 : -np 1 "${train[@]}" --data "$work/data" --seed 2
expect_error 78 "--seed differs over ranks"
run_ranks 1 "$bin/hetseq" train --task mnist --data "$work/data/train*.h5"
expect_error 78 "--max-epoch"
run_ranks 2 "${train[@]}" --data "$work/data/train*.h5" --lr-scheduler cosine --warmup-updates 1000 --balance auto \
  --cache-dir none
expect_error 78 "by --max-epoch 1, and --warmup-updates is 1000): to try a configuration"
! grep -q 'measuring the speed' "$work/log" || fail "speeds were measured before the options were checked"
[[ ! -e $work/run/model.safetensors ]] || fail "a model was left behind"

head -c 3000 "$work/data/train-00000-of-00002.h5" >"$work/data/train-00000-of-00002.tmp"
mv "$work/data/train-00000-of-00002.tmp" "$work/data/train-00000-of-00002.h5"
run_ranks 2 "${train[@]}" --data "$work/data/train*.h5"
expect_error 65 "train-00000-of-00002.h5"
run_ranks 2 "$bin/hetseq" check --task mnist --data "$work/data/train*.h5"
expect_error 65 "train-00000-of-00002.h5"
mkfifo "$work/pipe"
rc=0; timeout 60 "$bin/hetseq" check "$work/pipe" >"$work/log" 2>&1 || rc=$?
expect_error 65 "$work/pipe is not a file (it is a pipe)"

# Hydra names its folders so.
mv "$work/data" "$work/lr=0.1,bs=[2]"
"$bin/hetseq" check --task mnist --data "$work/lr=0.1,bs=[2]/t10k*.h5" >"$work/log" 2>&1 || { cat "$work/log"; fail "check of good data"; }
run_ranks 2 "${train[@]}" --data "$work/lr=0.1,bs=[2]/t10k*.h5" --dry-run
expect_ok "dry run"
grep -q 'everything was checked; would start a run of 2 updates' "$work/log" || { cat "$work/log"; fail "what it would do"; }
[[ ! -e $work/run ]] || fail "a dry run wrote"
