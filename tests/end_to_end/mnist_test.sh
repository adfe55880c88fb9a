#!/usr/bin/env bash
# Real MNIST, a third of an epoch at a global batch of 64 on two ranks: at least 97.4 % of the test images.
source "$(dirname "$0")/common.sh"
mnist=$HETSEQ_TEST_DATA/mnist
[[ -d $mnist ]] || skip "no MNIST in HETSEQ_TEST_DATA ($HETSEQ_TEST_DATA)"

"$bin/hetseq" prepare images "$mnist"/*.gz --output "$work/data" >"$work/log" 2>&1 || { cat "$work/log"; fail prepare; }
run_ranks 2 "$bin/hetseq" train "$(dirname "$0")/../../inputs/mnist.cfg" --data "$work/data/train*.h5" \
  --valid-data "$work/data/t10k*.h5" --max-update 300 --threads 1 --save-dir "$work/run"
expect_ok train
accuracy=$(json "$work/run/summary.json" valid.accuracy)
echo "accuracy after 300 updates: $accuracy"
awk -v a="$accuracy" 'BEGIN {exit !(a >= 0.974)}' || fail "accuracy $accuracy below 0.974"
