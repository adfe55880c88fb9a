#!/usr/bin/env bash
# Whole runs in 16 bits over the stand-ins of CUDA and NCCL: each layout of devices, `auto`, overflows, other mixes.
source "$(dirname "$0")/common.sh"
make_images
options=(--task mnist --data "$work/data/train*.h5" --max-sentences 8 --batch-size 16 --max-update 6 --log-interval 3
  --balance equal --optimizer sgd --lr 0.05 --seed 3)

# train RUN RANKS OPTION...
train() {
  local run=$1 ranks=$2; shift 2
  run_ranks "$ranks" "$bin/hetseq_stand_in" train "${options[@]}" --save-dir "$work/$run" "$@"
}
trained() {
  train "$@"
  expect_ok "$1"
  ! grep -i misuse "$work/log" || fail "$1: CUDA or NCCL was misused"
  ! grep -E '^\[W' "$work/log" || fail "$1: LibTorch warns"
}
near() { "$bin/compare_models" "$work/cpu/model.safetensors" "$work/$1/model.safetensors" 0.01 || fail "$1 is far off"; }
configured() { grep -qx "precision = $2" "$work/$1/config.cfg" || { grep '^precision' "$work/$1/config.cfg"; fail "$1 is not in $2"; }; }

trained cpu 1 --device cpu
trained fp16 2 --device cuda --precision fp16
near fp16
[[ $(json "$work/fp16/checkpoints/update-00000006/state.json" progress.loss_scale.value) == 65536.0 ]] ||
  fail 'the loss scale is not 65,536'
trained bf16 2 --device cuda --precision bf16
near bf16
trained mixed 3 --device 0-1=cuda,2=cpu --precision 0=fp16,1=bf16,2=fp32
near mixed
trained sent 2 --device cuda --reduce-precision bf16
near sent
trained sent-mixed 3 --device 0-1=cuda,2=cpu --precision 0=fp16,1=bf16,2=fp32 --reduce-precision bf16
near sent-mixed
for precision in fp16 bf16; do
  STAND_IN_GPUS=1 trained shared-$precision 2 --device cuda --precision $precision
  near shared-$precision
done

# What a device likes, and what it has not.
STAND_IN_CAPABILITY=7.5 trained turing 1 --device cuda --precision auto --max-update 1
configured turing fp16
STAND_IN_CAPABILITY=9.0 trained hopper 1 --device cuda --precision auto --max-update 1
configured hopper bf16
STAND_IN_CAPABILITY=7.5 trained words 1 --device cuda --precision 'stand-in=tf32' --max-update 1
configured words fp32
STAND_IN_CAPABILITY=7.5 train refused 1 --device cuda --precision bf16
expect_error 78 'give this rank fp16 or fp32'

# Large gradients of a batch of one overflow. All ranks repeat, no batch is lost, and the run goes on in another mix.
small=(--batch-size 1 --max-sentences 1 --max-update 12)
trained whole 1 --device cpu "${small[@]}"
trained overflows 2 --device 0=cuda,1=cpu --precision 0=fp16,1=fp32 "${small[@]}" --max-update 6
grep -q 'is repeated: a gradient in fp16 was too large, and the loss scale is' "$work/log" || fail 'nothing overflowed'
(($(json "$work/overflows/summary.json" overflows) > 0)) || fail 'summary.json tells of no overflow'
(($(json "$work/overflows/summary.json" skipped) == 0)) || fail 'an update was skipped'
grep -q '"loss_scale":[1-9]' "$work/overflows/metrics.jsonl" || fail 'metrics.jsonl tells no loss scale'
trained overflows 2 --device 0=cpu,1=cuda --precision 0=fp32,1=bf16 "${small[@]}"
! grep -q 'loss_scale":[1-9]' <(tail -n 1 "$work/overflows/metrics.jsonl") || fail 'a loss scale without fp16'
"$bin/compare_models" "$work/whole/model.safetensors" "$work/overflows/model.safetensors" 0.03 || fail 'overflows left something out'

# An infinity on the one rank of three in fp16: a scale of 2^24 is too large there, and not in bf16 and fp32. All of them
# repeat, and hold what a run has that went on without one.
unlike=(--device '0=cpu,1-2=cuda' --precision '0=fp32,1=fp16,2=bf16' --batch-size 3 --max-sentences 1 --max-update 4
  --stop-exit-code 0 --check-interval 1 --drift abort)
trained undisturbed 3 "${unlike[@]}" --stop-after 2
cp -r "$work/undisturbed" "$work/infinite"
"$bin/set_loss_scale" "$work/infinite/checkpoints/update-00000002" 16777216 || fail 'no loss scale to set'
trained undisturbed 3 "${unlike[@]}"
! grep 'is repeated' "$work/log" || fail 'an update was repeated without a reason'
trained infinite 3 "${unlike[@]}"
grep -q 'update 3 is repeated: a gradient in fp16 was too large' "$work/log" || fail 'nothing was infinite'
(($(json "$work/infinite/summary.json" skipped) == 0)) || fail 'an infinite update was skipped'
"$bin/compare_models" "$work/undisturbed/model.safetensors" "$work/infinite/model.safetensors" 0 ||
  fail 'an infinity on one of three ranks left something behind'

make_bert_and_numbers
options=(--task bert --model-config tiny --data "$work/bert" --max-sentences 8 --batch-size 16 --max-update 2 --optimizer lamb --lr 1e-3)
trained bert-cpu 1 --device cpu
trained bert 2 --device cuda --precision 0=fp16,1=bf16
"$bin/compare_models" "$work/bert-cpu/model.safetensors" "$work/bert/model.safetensors" 0.01 || fail 'BERT is far off'
echo '16 bits over the stand-ins: ok'
