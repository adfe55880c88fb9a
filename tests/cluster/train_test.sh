#!/usr/bin/env bash
# Training over two hosts that declare unlike capacities gives what one rank gives.
source "$(dirname "$0")/common.sh"
make_images
common=(--task mnist --data "$work/data/train*.h5" --valid-data "$work/data/t10k*.h5" --batch-size 24
  --max-update 10 --precision fp64 --optimizer adam --lr 0.001 --log-interval 5)
run_ranks 1 "$bin/hetseq" train "${common[@]}" --max-sentences 24 --save-dir "$work/one"
expect_ok 'one rank'

cluster_up h1:slots=3 h2:slots=1
run_cluster 4 "$bin/hetseq" train "${common[@]}" --balance declared --max-sentences h1=2,h2=6 --cache-mb h1=64,h2=16 \
  --save-dir "$work/two"
expect_ok 'two hosts'
# The start table names the hosts; h2's rank has 6 of 2 + 2 + 2 + 6.
grep -Eq '^ *3 +h2 .* 6 +12 +50 %' "$work/log" || { cat "$work/log"; fail "h2's share is not 12"; }
"$bin/compare_models" "$work/one/model.safetensors" "$work/two/model.safetensors" 1e-12 || fail 'other parameters than one rank'

# Cut by measured speed, one host slowed down meanwhile: the same.
"$vcluster" cpu h2 0.2
run_cluster 4 "$bin/hetseq" train "${common[@]}" --max-sentences 12 --cache-dir none --save-dir "$work/measured"
expect_ok 'two hosts, auto'
"$bin/compare_models" "$work/one/model.safetensors" "$work/measured/model.safetensors" 1e-12 ||
  fail 'other parameters than one rank with --balance auto'
