#!/usr/bin/env bash
# The worked example of docs/extending.md: a program with a model of its own trains on two ranks, and the document shows
# the code as it is.
source "$(dirname "$0")/common.sh"
here=$(dirname "$0")
make_images

run_ranks 2 "$bin/softmax_regression" train --task mnist --model softmax-regression --data "$work/data/train*.h5" \
  --valid-data "$work/data/t10k*.h5" --max-sentences 16 --max-epoch 3 --save-dir "$work/run"
expect_ok train
awk -v a="$(json "$work/run/summary.json" valid.accuracy)" 'BEGIN {exit !(a > 0.99)}' || fail "accuracy below 0.99"
# shellcheck disable=SC2016  # backticks of the document
sed -n '/^```cpp$/,/^```$/p' "$here/../../docs/extending.md" | sed '1d;$d' | diff - "$here/../extending/softmax_regression.cpp" ||
  fail "docs/extending.md shows other code"
