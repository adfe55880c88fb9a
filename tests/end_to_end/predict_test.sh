#!/usr/bin/env bash
# hetseq predict: the same file on any ranks, in the order of the data; its accuracy is evaluate's; ragged rows; errors.
source "$(dirname "$0")/common.sh"
make_some_images 300 200
run=$work/run
run_ranks 2 "$bin/hetseq" train --task mnist --data "$work/data/train*.h5" --valid-data "$work/data/t10k*.h5" \
  --max-sentences 16 --max-epoch 1 --threads 1 --save-interval-updates 5 --keep-last 0 --save-dir "$run"
expect_ok train

# predict RANKS OUTPUT OPTION...: what it says in $work/log, its exit code in $rc.
predict() {
  local ranks=$1 output=$2; shift 2
  run_ranks "$ranks" "$bin/hetseq" predict "$run" --data "$work/data/t10k*.h5" --threads 1 --batch-size 8 --output "$work/$output" "$@"
}
same() { cmp "$work/$1" "$work/$2" || fail "$1 differs from $2"; }

predict 1 one.h5; expect_ok 'one rank'
predict 3 three.h5 --json; expect_ok 'three ranks'
same one.h5 three.h5
json_output "$work/summary.json"
[[ $(json "$work/summary.json" samples) == 200 ]] || fail 'samples'
python3 - "$work/summary.json" "$run" <<'PYTHON' || fail 'summary'
import json, sys
summary, run = json.load(open(sys.argv[1])), sys.argv[2]
assert summary["model"] == f"{run}/best.safetensors", summary
assert len(summary["samples_by_rank"]) == 3 and sum(summary["samples_by_rank"]) == 200, summary
assert summary["datasets"] == [{"name": "probabilities", "type": "float32", "row_shape": [10]},
                               {"name": "label", "type": "uint8", "row_shape": []}], summary
PYTHON
"$bin/hetseq" predict "$run" --data "$work/data/t10k*.h5" --threads 1 --batch-size 8 --output "$work/alone.h5" >"$work/log" 2>&1 ||
  { cat "$work/log"; fail 'without mpirun'; }
same one.h5 alone.h5

# The accuracy and the loss in the file are those of evaluate.
run_ranks 1 "$bin/hetseq" evaluate --task mnist --init-model "$run/best.safetensors" --data "$work/data/t10k*.h5" --threads 1 --json
expect_ok evaluate
json_output "$work/evaluation.json"
"$bin/predictions" score "$work/one.h5" "$work"/data/t10k*.h5 >"$work/scores" || { cat "$work/scores"; fail 'the scores of the file'; }
read -r accuracy loss samples <"$work/scores"
[[ $samples == 200 ]] || fail "$samples rows"
awk -v a="$accuracy" -v b="$(json "$work/evaluation.json" accuracy)" -v c="$loss" -v d="$(json "$work/evaluation.json" loss)" \
  'BEGIN {e = c - d; exit !(a == b && a > 0.5 && e < 1e-5 && e > -1e-5)}' || fail "accuracy $accuracy and loss $loss are not evaluate's"

# Data without labels give the same predictions.
cp -r "$work/data" "$work/unlabelled"
"$bin/predictions" strip-labels "$work"/unlabelled/*.h5 || fail 'strip labels'
run_ranks 1 "$bin/hetseq" predict "$run" --data "$work/unlabelled/t10k*.h5" --threads 1 --batch-size 8 --output "$work/unlabelled.h5"
expect_ok 'without labels'
"$bin/predictions" same "$work/one.h5" "$work/unlabelled.h5" || fail 'other predictions without labels'

# Other parameters; a file that is there.
predict 1 last.h5 --checkpoint last; expect_ok last
predict 1 mean.h5 --checkpoint average:2; expect_ok average:2
"$bin/predictions" same "$work/last.h5" "$work/mean.h5" && fail 'a mean like the last'
predict 2 one.h5
expect_error 78 'exists already'
predict 2 one.h5 --overwrite; expect_ok overwrite
same one.h5 three.h5

# A disk that fills up is one clear error, and the end of MPI survives what HDF5 could not close.
limited=("$bin/hetseq" predict "$run" --data "$work/data/t10k*.h5" --threads 1 --batch-size 8 --output "$work/full.h5")
run_ranks 1 bash -c 'ulimit -f 4; exec "$@"' bash "${limited[@]}"
expect_error 74 'cannot write'
[[ ! -e $work/full.h5 ]] || fail 'a part of the predictions was left'

# Errors come before any work and leave nothing behind.
run_ranks 1 "$bin/hetseq" predict "$run" --output "$work/none.h5"
expect_error 78 '--data is missing'
run_ranks 1 "$bin/hetseq" predict "$work/no-run" --data "$work/data/t10k*.h5" --output "$work/none.h5"
expect_error 66 "there is no folder $work/no-run"
run_ranks 2 "$bin/hetseq" predict "$run" --data "$work/nothing*.h5" --output "$work/none.h5"
expect_error 66 'nothing*.h5'
predict 2 no-folder/none.h5
expect_error 74 'no-folder/none.h5'
predict 1 data
expect_error 78 'is a folder'
predict 1 none.h5 --batch-size 0
expect_error 78 "--batch-size: '0'"
predict 1 none.h5 --checkpoint "$work/none.safetensors"
expect_error 66 'none.safetensors'
cp -r "$work/data" "$work/damaged"
"$bin/predictions" bad-label "$work/damaged/t10k-00001-of-00002.h5" 70 || fail 'a bad label'
run_ranks 3 "$bin/hetseq" predict "$run" --data "$work/damaged/t10k*.h5" --threads 1 --batch-size 8 --output "$work/none.h5"
expect_error 65 "t10k-00001-of-00002.h5: dataset 'labels'"
[[ ! -e $work/none.h5 ]] || fail 'a file of a failed prediction'
compgen -G "$work/*.tmp-*" && fail 'something is left of a failed prediction'
mkdir "$work/small"
rc=0  # no file may grow beyond 8 KiB: a full disk
(trap '' XFSZ; ulimit -f 8; "$bin/hetseq" predict "$run" --data "$work/data/t10k*.h5" --output "$work/small/out.h5" --threads 1 \
  >"$work/log" 2>&1) || rc=$?
expect_error 74 "cannot write $work/small/out.h5"
[[ -z $(ls "$work/small") ]] || fail 'something is left of a full disk'

# A model of one's own, with rows of unequal length.
"$bin/ragged_model" write "$work/pairs" 500 3 8 0.6 40 || fail 'write pairs'
run_ranks 1 "$bin/ragged_model" train --task pairs --data "$work/pairs" --max-tokens 400 --max-update 20 --lr 0.01 --threads 1 \
  --save-dir "$work/pairs-run"
expect_ok 'train pairs'
for ranks in 1 3; do
  run_ranks "$ranks" "$bin/ragged_model" predict "$work/pairs-run" --data "$work/pairs" --threads 1 --batch-size 5 \
    --output "$work/pairs-$ranks.h5"
  expect_ok "pairs on $ranks ranks"
done
same pairs-1.h5 pairs-3.h5
"$bin/predictions" same-lengths "$work/pairs-1.h5" words "$work"/pairs/*.h5 target || fail 'the lengths of ragged predictions'

# A model that predicts nothing, and one that has a command of its own.
run_ranks 1 "$bin/failing_model" train --task mnist --model failing --data "$work/data/train*.h5" --max-update 1 --save-dir "$work/silent"
expect_ok 'train a silent model'
run_ranks 1 "$bin/failing_model" predict "$work/silent" --data "$work/data/t10k*.h5" --output "$work/none.h5"
expect_error 78 "the model 'failing' makes no predictions"
mkdir "$work/text"
printf 'task = translation\nmodel = transformer\n' >"$work/text/config.cfg"
run_ranks 1 "$bin/hetseq" predict "$work/text" --data "$work/data" --output "$work/none.h5"
expect_error 78 "hetseq translate $work/text"
