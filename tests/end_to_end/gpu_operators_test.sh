#!/usr/bin/env bash
# An update asks of a GPU what gpu_operators.txt says, and the host waits for it once. Over the stand-ins, which count.
source "$(dirname "$0")/common.sh"
expected=$(realpath "$(dirname "$0")/gpu_operators.txt")
make_images
make_bert_and_numbers
cd "$work"

# update NAME WORDS...: a line as in gpu_operators.txt, from the difference of four updates and two; what they are made
# of is in NAME.txt.
update() {
  local name=$1 updates; shift
  for updates in 2 4; do
    STAND_IN_COUNTS=counts-$updates run_ranks 1 "$bin/hetseq_stand_in" train "$@" --max-update "$updates" --log-interval 2 \
      --device cuda --balance declared --save-dir "run-$name-$updates"
    expect_ok "$name"
  done
  awk -F '\t' -v name="$name" 'NR == FNR { earlier[$1, $2] = $3; next }
    { here = ($3 - earlier[$1, $2]) / 2 }
    $1 != "memory" && here != 0 { print $1, $2, here >(name ".txt"); sum[$1] += here }
    END { print name, sum["operator"] + 0, sum["kernel"] + 0, sum["copy"] + 0, sum["wait"] + 0 }' \
    counts-2 counts-4 >>found.txt
}
update mnist --task mnist --data 'data/train*.h5' --max-sentences 16
update mnist-decay --task mnist --data 'data/train*.h5' --max-sentences 16 --weight-decay 0.01 --clip-norm 1
for precision in fp32 bf16 fp16; do
  update bert-tiny-$precision --task bert --model-config tiny --data 'bert/train*.h5' --max-sentences 16 --batch-size 16 \
    --precision $precision
  update transformer-tiny-$precision --task translation --model-config tiny --dropout 0.1 --attention-dropout 0.1 \
    --data 'numbers/train*.h5' --batch-tokens 1000 --max-tokens 4000 --precision $precision
done
# Before LibTorch 2.8 a product of 16 bits with a result in fp32 is two operators.
libtorch=$("$bin/hetseq_stand_in" info 2>/dev/null | sed -nE 's/^LibTorch +2\.([0-9]+)\..*/\1/p')
others='^#'
((libtorch >= 8)) || others='^#|-(bf16|fp16) '
diff <(grep -vE "$others" "$expected") <(grep -vE "$others" found.txt) || {
  tail -n +1 -- mnist*.txt bert*.txt transformer*.txt
  fail 'other counts than gpu_operators.txt (<) were found (>)'
}
