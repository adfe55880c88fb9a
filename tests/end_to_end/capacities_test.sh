#!/usr/bin/env bash
# Capacities 3:1:0 on three ranks give the parameters that one rank gives (fp64, dropout on), whether they are a list or
# stand on the command lines of an MPMD job.
source "$(dirname "$0")/common.sh"
make_images
common=(--task mnist --data "$work/data/train*.h5" --batch-size 12 --balance declared --max-update 10 --precision fp64
  --optimizer adam --lr 0.001 --adam-eps 1e-8)

run_ranks 1 "$bin/hetseq" train "${common[@]}" --max-sentences 12 --save-dir "$work/one"
expect_ok "one rank"
run_ranks 3 "$bin/hetseq" train "${common[@]}" --max-sentences 0=3,1=1,2=0 --save-dir "$work/three"
expect_ok "three ranks"
"$bin/compare_models" "$work/one/model.safetensors" "$work/three/model.safetensors" 1e-12 || fail "3:1:0 differs from one rank"
grep -q 'max-sentences = 0=3,1=1,2=0' "$work/three/config.cfg" || fail "config.cfg lacks the list"

run_ranks 1 "$bin/hetseq" train "${common[@]}" --max-sentences 3 --save-dir "$work/mpmd" \
  : -np 1 "$bin/hetseq" train "${common[@]}" --max-sentences 1 --save-dir "$work/mpmd" \
  : -np 1 "$bin/hetseq" train "${common[@]}" --max-sentences 0 --save-dir "$work/mpmd"
expect_ok "MPMD"
"$bin/compare_models" "$work/three/model.safetensors" "$work/mpmd/model.safetensors" 0 || fail "MPMD differs from the list"
