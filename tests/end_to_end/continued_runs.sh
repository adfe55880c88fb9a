# Sourced by the tests of continued runs, after common.sh: four epochs of 38 updates, the same bits each time. A test that
# sets images=74 before has 19 updates an epoch.
# shellcheck shell=bash disable=SC2154  # $bin and $work are set there
make_some_images "${images:-150}" 50
options=(--task mnist --save-minutes 0 --precision fp64 --data "$work/data/train*.h5" --valid-data "$work/data/t10k*.h5" --max-sentences 2 --seed 3
  --balance declared --batch-size 4 --log-interval 5 --max-epoch 4)

train() { local run=$1 ranks=$2; shift 2; run_ranks "$ranks" "$bin/hetseq" train "${options[@]}" --save-dir "$work/$run" "$@"; }

# same_checkpoints RUN OTHER: all that their last checkpoints hold of model and optimizer, byte by byte.
same_checkpoints() {
  local file checkpoint
  checkpoint=$(find "$work/$1/checkpoints" -maxdepth 1 -name 'update-*' | sort | tail -n 1)
  checkpoint=checkpoints/${checkpoint##*/}
  for file in "$work/$1/$checkpoint"/*.safetensors; do
    cmp "$file" "$work/$2/$checkpoint/${file##*/}" || fail "$2 does not have the bytes of $1"
  done
}
