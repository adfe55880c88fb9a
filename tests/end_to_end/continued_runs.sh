# Sourced by the tests of continued runs, after common.sh: a run of 152 updates in 4 epochs, the same bits each time.
# shellcheck shell=bash disable=SC2154  # $bin and $work are set there
make_some_images 150 50
options=(--task mnist --precision fp64 --data "$work/data/train*.h5" --valid-data "$work/data/t10k*.h5" --max-sentences 2 --seed 3
  --balance declared --batch-size 4 --log-interval 5 --max-epoch 4)

train() { local run=$1 ranks=$2; shift 2; run_ranks "$ranks" "$bin/hetseq" train "${options[@]}" --save-dir "$work/$run" "$@"; }
