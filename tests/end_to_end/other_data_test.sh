#!/usr/bin/env bash
# A run is not continued with other data of the same shapes, sample counts and file names.
source "$(dirname "$0")/common.sh"
make_some_images 300 100
# The images that the first set validates on, and more of them, are trained on; the others are validated on.
mkdir -p "$work/other_idx"
"$bin/make_images" "$work/other_idx" 100 300
for kind in images-idx3-ubyte labels-idx1-ubyte; do
  mv "$work/other_idx/train-$kind" "$work/other_idx/swapped"
  mv "$work/other_idx/t10k-$kind" "$work/other_idx/train-$kind"
  mv "$work/other_idx/swapped" "$work/other_idx/t10k-$kind"
done
"$bin/hetseq" prepare images "$work"/other_idx/*ubyte --output "$work/other" --shards 2 >"$work/log" 2>&1 ||
  { cat "$work/log"; fail prepare; }
[[ $(ls "$work/data") == "$(ls "$work/other")" ]] || fail "the sets have unlike names"

train() {
  run_ranks 2 "$bin/hetseq" train --task mnist --max-sentences 8 --batch-size 16 --balance auto --cache-dir none --log-interval 100 "$@"
}
data=(--data "$work/data/train*.h5" --valid-data "$work/data/t10k*.h5")
other=(--data "$work/other/train*.h5" --valid-data "$work/data/t10k*.h5")

train "${data[@]}" --save-dir "$work/run" --max-epoch 1
expect_ok train
cp -r "$work/run" "$work/before"

# Refused before any work: further, at its end, and in a dry run. Nothing of the run changes.
for more in "--max-epoch 2" "--max-epoch 1" "--max-epoch 2 --dry-run"; do
  # shellcheck disable=SC2086  # words
  train "${other[@]}" --save-dir "$work/run" $more
  expect_error 78 "--data is not what $work/run/checkpoints/update-00000019 was trained with (shard train-00000-of-00002.h5 holds other values"
  ! grep -q 'measuring the speed' "$work/log" || { cat "$work/log"; fail "measured with other data"; }
  diff -r "$work/before" "$work/run" || fail "the run was changed"
done
train "${other[@]}" --save-dir "$work/next" --max-epoch 2 --restore-file "$work/run"
expect_error 78 "--reset-position"
train "${other[@]}" --save-dir "$work/next" --max-epoch 2 --restore-file "$work/run" --reset-position
expect_ok "another run on other data"
[[ $(json "$work/next/summary.json" updates_since_start) == 38 ]] || fail "did not train two epochs of the other data"

# Data that have moved are the same.
mv "$work/data" "$work/moved"
train --data "$work/moved" --valid-data "$work/moved/t10k*.h5" --save-dir "$work/run" --max-epoch 2
expect_error 78 "400 samples"
train --data "$work/moved/train*.h5" --valid-data "$work/moved/t10k*.h5" --save-dir "$work/run" --max-epoch 2
expect_ok "data that have moved"
grep -q 'continues from .*update-00000019' "$work/log" || { cat "$work/log"; fail "did not continue"; }
! grep -q 'count from here' "$work/log" || fail "validation data that have moved are taken for others"

# Other validation data do not change the run, but its best model.
train --data "$work/moved/train*.h5" --valid-data "$work/other/t10k*.h5" --save-dir "$work/run" --max-epoch 3
expect_ok "other validation data"
(($(grep -c 'valid-data is not what .*: the best model and --patience count from here' "$work/log") == 1)) ||
  { cat "$work/log"; fail "no warning of other validation data"; }
python3 - "$work/run/checkpoints/update-00000057/state.json" <<'END' || fail "the best model is still that of the first data"
import json, sys
progress = json.load(open(sys.argv[1]))["progress"]
sys.exit(progress["best_update"] != 57 or progress["validations_since_best"] != 0)
END
