#!/usr/bin/env bash
# Forward and backward run as many operators as operators.txt says, and no number is read in between.
source "$(dirname "$0")/common.sh"
expected=$(realpath "$(dirname "$0")/operators.txt")
make_images
make_bert_and_numbers
cd "$work"

# count NAME WORDS...: a line as in operators.txt.
count() {
  local name=$1; shift
  "$bin/hetseq" bench roofline "$@" >"$work/out.json" 2>"$work/log" || { cat "$work/log"; fail "$name"; }
  echo "$name $(json out.json forward_backward.operators) $(json out.json numbers_read)" >>found.txt
}
count mnist --task mnist --data 'data/train*.h5' --max-sentences 16
count bert-tiny --task bert --model-config tiny --data 'bert/train*.h5' --max-sentences 16
count transformer-tiny --task translation --model-config tiny --dropout 0.1 --data 'numbers/train*.h5' --batch-tokens 1000 \
  --max-tokens 4000
diff <(grep -v '^#' "$expected") found.txt || fail 'other counts than operators.txt (<) were found (>)'
