#!/usr/bin/env bash
# The main job on generated images: train on two ranks, look at what it leaves, evaluate it, repeat it.
source "$(dirname "$0")/common.sh"
make_some_images 300 100

run_ranks 2 "$bin/hetseq" train --task mnist --data "$work/data/train*.h5" --valid-data "$work/data/t10k*.h5" \
  --max-sentences 8 --max-epoch 2 --precision fp64 --log-interval 5 --save-dir "$work/run"
expect_ok train
for file in config.cfg metrics.jsonl summary.json model.safetensors best.safetensors; do
  [[ -s $work/run/$file ]] || fail "$file is missing"
done
grep -q 'update 38/38' "$work/log" || { cat "$work/log"; fail "no line of the last update"; }
[[ $(json "$work/run/summary.json" updates) == 38 ]] || fail "updates"
[[ $(json "$work/run/summary.json" samples) == 600 ]] || fail "samples"
awk -v a="$(json "$work/run/summary.json" valid.accuracy)" 'BEGIN {exit !(a > 0.99)}' || fail "accuracy below 0.99"

# Evaluated alone: the same losses and metrics as the run's last validation.
run_ranks 3 "$bin/hetseq" evaluate "$work/run" --checkpoint last --data "$work/data/t10k*.h5" --json
expect_ok evaluate
json_output "$work/evaluation.json"
[[ $(json "$work/evaluation.json" accuracy) == $(json "$work/run/summary.json" valid.accuracy) ]] || fail "accuracy differs"
[[ $(json "$work/evaluation.json" model) == "$work/run/checkpoints/update-00000038/model.safetensors" ]] || fail "evaluate does not name the model"
[[ $(json "$work/evaluation.json" data) == "$work/data/t10k*.h5" ]] || fail "evaluate does not name the data"
awk -v a="$(json "$work/evaluation.json" loss)" -v b="$(json "$work/run/summary.json" valid.loss)" \
  'BEGIN {d = a - b; exit !(d < 1e-9 && d > -1e-9)}' || fail "loss differs"

# A model without its run: the same again, of the best one.
run_ranks 1 "$bin/hetseq" evaluate --task mnist --init-model "$work/run/best.safetensors" --data "$work/data/t10k*.h5" \
  --precision fp64 --json
expect_ok "evaluate a file"
json_output "$work/evaluation.json"
awk -v a="$(json "$work/evaluation.json" loss)" -v b="$(json "$work/run/summary.json" valid.best.loss)" \
  'BEGIN {d = a - b; exit !(d < 1e-9 && d > -1e-9)}' || fail "loss of the best model differs"
run_ranks 1 "$bin/hetseq" evaluate --task mnist --data "$work/data/t10k*.h5"
expect_error 64 "no model to evaluate"
run_ranks 1 "$bin/hetseq" evaluate --task mnist --init-model "$work/run/none.safetensors" --data "$work/data/t10k*.h5"
expect_error 66 "none.safetensors"

# Data given by a relative path: its configuration repeats it from another folder.
bin=$(realpath "$bin")
(cd "$work" && run_ranks 1 "$bin/hetseq" train --task mnist --data 'data/train*.h5' --valid-data data/t10k-00000-of-00002.h5 \
  --max-update 2 --save-dir relative && expect_ok "relative paths")
(cd / && run_ranks 1 "$bin/hetseq" train "$work/relative/config.cfg" --save-dir "$work/repeated" && expect_ok "from another folder")
(cd / && run_ranks 1 "$bin/hetseq" evaluate "$work/relative" && expect_ok "evaluated from another folder")
grep -q "^model  *$work/relative/best.safetensors" "$work/log" || { cat "$work/log"; fail "evaluate does not take the best model"; }
grep -q "^data  *$work/data/t10k" "$work/log" || { cat "$work/log"; fail "evaluate does not name the data"; }

# Its configuration and its cuts repeat it; a folder that holds a run is not written again.
run_ranks 2 "$bin/hetseq" train "$work/run/config.cfg" --balance "file:$work/run/allocations.json" --save-dir "$work/again"
expect_ok repeat
"$bin/compare_models" "$work/run/model.safetensors" "$work/again/model.safetensors" 0 || fail "the repeated run differs"
mv "$work/run/model.safetensors" "$work/finished.safetensors"  # as if it had been killed before it wrote the model
run_ranks 1 "$bin/hetseq" train "$work/run/config.cfg" --save-dir "$work/run"
expect_ok "a finished run"
grep -q 'nothing to do' "$work/log" || { cat "$work/log"; fail "a finished run is not left alone"; }
cmp "$work/run/model.safetensors" "$work/finished.safetensors" || fail "a finished run lacks its model"
cp "$work/again/best.safetensors" "$work/run/model.safetensors"  # of an earlier end, before the run was taken further
touch -d '2000-01-01' "$work/run/model.safetensors"
sed -i 's/"status": "finished"/"status": "stopped"/' "$work/run/summary.json"  # at this update, before the run was made shorter
grep -q '"status": "stopped"' "$work/run/summary.json" || fail "there is no status"
run_ranks 1 "$bin/hetseq" train "$work/run/config.cfg" --save-dir "$work/run"
expect_ok "a run with the model of an earlier end"
cmp "$work/run/model.safetensors" "$work/finished.safetensors" || fail "a finished run keeps the model of an earlier end"
grep -q '"status": "finished"' "$work/run/summary.json" || fail "a run that was made shorter is called stopped"
run_ranks 2 "$bin/hetseq" train "$work/run/config.cfg" --save-dir "$work/run" --resume never
expect_error 78 "holds a run already"

# Of a run with --ema, a lost best model is taken from its checkpoint again: the average, as it was.
run_ranks 1 "$bin/hetseq" train --task mnist --data "$work/data/train*.h5" --valid-data "$work/data/t10k*.h5" --threads 1 \
  --max-epoch 1 --ema 0.9 --save-dir "$work/averaged"
expect_ok "a run with --ema"
mv "$work/averaged/best.safetensors" "$work/best.safetensors"
run_ranks 1 "$bin/hetseq" train "$work/averaged/config.cfg" --save-dir "$work/averaged" --max-epoch 2 --stop-after 1 --stop-exit-code 0
expect_ok "a run without its best model"
cmp "$work/averaged/best.safetensors" "$work/best.safetensors" || fail "the best model is not the average"
