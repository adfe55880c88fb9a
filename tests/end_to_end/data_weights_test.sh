#!/usr/bin/env bash
# --data-weights: three sets of shards of unequal length, and two of one shape, mixed by weights. One rank's parameters on any
# ranks, also where a run is continued in the middle of an epoch; weights of 1 change nothing; what is refused.
source "$(dirname "$0")/common.sh"
program=$bin/ragged_model
"$program" write "$work/wiki" 300 2 12 0.6 60
"$program" write "$work/books" 90 1 20 0.6 60
"$program" write "$work/tiny" 1 1 12 0.1 60
"$program" write "$work/valid" 50 1 12 0.6 60
ragged=("$program" train --task pairs --data "$work/wiki,$work/books/*.h5,$work/tiny" --batch-tokens 600 --precision fp64
  --dropout 0.2 --block-length 40 --shuffle-blocks 3 --threads 1 --balance declared)
make_some_images 100 20
mkdir "$work/more"
"$bin/hetseq" prepare images "$work"/idx/train* --output "$work/more" --shards 1 --overwrite >"$work/log" 2>&1 ||
  { cat "$work/log"; fail prepare; }
images=("$bin/hetseq" train --task mnist --data "$work/data/train*.h5,$work/more/train*.h5" --batch-size 24 --precision fp64
  --block-length 16 --shuffle-blocks 2 --threads 1 --balance declared)
# train RANKS RUN COMMAND...
train() {
  local ranks=$1 run=$2; shift 2
  run_ranks "$ranks" "$@" --save-dir "$work/$run"
}
same() { "$bin/compare_models" "$work/$1/model.safetensors" "$work/$2/model.safetensors" "$3" || fail "$1 differs from $2"; }
says() { grep -qE -- "$1" "$work/log" || { cat "$work/log"; fail "expected: $1"; }; }

weights=(--data-weights '0.4,2.5,7')
train 1 one "${ragged[@]}" "${weights[@]}" --max-epoch 2 --max-tokens 2000 --valid-data "$work/valid"
expect_ok one
says 'wiki +0\.4 +120 +34\.1 %'  # of 120 + 225 + 7
says 'tokens an epoch'
says '352 samples, [0-9]+ updates an epoch'
(($(json "$work/one/summary.json" samples) == 704)) || fail 'an epoch has not 352 samples'
grep -q 'data-weights *= *0.4,2.5,7' "$work/one/config.cfg" || fail 'the weights are not recorded'
updates=$(json "$work/one/summary.json" updates)
train 2 cut "${ragged[@]}" "${weights[@]}" --max-update $((updates * 2 / 3)) --max-tokens 500
expect_ok cut
train 1 cut "${ragged[@]}" --data-weights 0.4,2.5,8 --max-update "$updates" --max-tokens 300
expect_error 78 '--data-weights'
train 3 cut "${ragged[@]}" "${weights[@]}" --max-update "$updates" --max-tokens 0=300,1=0,2=700
expect_ok continued
same one cut 1e-12

images_weights=(--data-weights '1.25,0.5')
train 1 images-1 "${images[@]}" "${images_weights[@]}" --max-epoch 2 --max-sentences 24
expect_ok images-1
says '175 samples, 8 updates an epoch'
train 3 images-3 "${images[@]}" "${images_weights[@]}" --max-update 11 --max-sentences 0=4,1=12,2=8
expect_ok 'images, stopped'
train 2 images-3 "${images[@]}" "${images_weights[@]}" --max-epoch 2 --max-sentences 8
expect_ok images-3
same images-1 images-3 1e-12
train 1 plain "${images[@]}" --max-update 9 --max-sentences 24
expect_ok plain
train 1 ones "${images[@]}" --data-weights 1,1 --max-update 9 --max-sentences 24
expect_ok ones
same plain ones 0

run_ranks 1 "${images[@]}" --data-weights 1 --dry-run --max-sentences 24
expect_error 78 '--data-weights has 1 weight'
for bad in 0,1 1,1001; do
  run_ranks 1 "${images[@]}" --data-weights $bad --dry-run --max-sentences 24
  expect_error 78 '--data-weights'
done
