#!/usr/bin/env bash
# Does this version train the same bits as another one? Short runs of every built-in task, whole and cut in each way, by
# both programs on the same data; says of each whether the models are the same bytes. Runs with options that the other
# program does not know are left out. A file of expected bits would hold on one kind of processor alone.
set -euo pipefail

usage='usage: jobs/compare/same_bits.sh OTHER
  OTHER   the program of another build, as ../before/build/cpu/bin/hetseq'
[[ ${1-} != -h && ${1-} != --help ]] || { echo "$usage"; exit 0; }
[[ $# == 1 && -x $1 ]] || { echo "$usage" >&2; exit 64; }
other=$(realpath "$1")
source "$(dirname "$0")/../common.sh"
set -- build/cpu/bin
source tests/end_to_end/common.sh
[[ -x $bin/make_images ]] || { echo "there is no $bin/make_images: build the tests (docs/building.md)" >&2; exit 69; }
make_images
make_bert_and_numbers
images=(--task mnist --data "$work/data/train*.h5" --valid-data "$work/data/t10k*.h5" --max-sentences 8 --batch-size 24)
bert=(--task bert --model-config tiny --data "$work/bert/train*.h5" --max-sentences 4 --batch-size 12)
numbers=(--task translation --model-config tiny --data "$work/numbers/train*.h5" --max-tokens 400 --batch-tokens 900)
declared=(--balance declared)

differ=0
known=$("$other" train --help)
knows() { [[ $known == *"$1 "* ]]; }
once=(--threads 1 --max-update 8 --seed 3)
! knows --save-minutes || once+=(--save-minutes 0)
# same NAME RANKS OPTION...
same() {
  local name=$1 ranks=$2 program run word sums=(); shift 2
  for word in "$@"; do
    [[ $word != --* ]] || knows "$word" || { echo "| $name | $ranks | the other has no $word |"; return 0; }
  done
  for program in "$bin/hetseq" "$other"; do
    run=$work/run
    rm -rf "$run"
    run_ranks "$ranks" "$program" train "$@" "${once[@]}" --save-dir "$run"
    expect_ok "$name by $program"
    sums+=("$(sha256sum <"$run/model.safetensors")")
  done
  if [[ ${sums[0]} == "${sums[1]}" ]]; then
    echo "| $name | $ranks | same bytes |"
  else
    echo "| $name | $ranks | OTHER BYTES |"
    differ=1
  fi
}
printf '| run | ranks | model |\n|---|---|---|\n'
same mnist 1 "${images[@]}"
same mnist 3 "${images[@]}" "${declared[@]}" --max-sentences 0=8,1=4,2=0
same 'mnist, fp64' 2 "${images[@]}" "${declared[@]}" --precision fp64
same 'mnist, fp64, clipped' 2 "${images[@]}" "${declared[@]}" --precision fp64 --clip-norm 0.5
same 'mnist, bf16 on the wire' 2 "${images[@]}" "${declared[@]}" --reduce-precision bf16
same 'mnist, state cut' 2 "${images[@]}" "${declared[@]}" --shard optimizer --shard-by 0=1,1=3 --optimizer adamw --lr 0.001
same 'mnist, two updates late' 2 "${images[@]}" "${declared[@]}" --staleness 2 --optimizer sgd --lr 0.01
same 'mnist, pipeline' 3 "${images[@]}" --virtual-workers 0+1,2 --stage-units 1+2,3 --balance equal
same bert 1 "${bert[@]}"
same bert 2 "${bert[@]}" "${declared[@]}" --max-sentences 0=4,1=2
same 'bert, an average kept' 2 "${bert[@]}" "${declared[@]}" --max-sentences 0=4,1=2 --ema 0.9
same 'bert, recomputed' 2 "${bert[@]}" "${declared[@]}" --recompute all
same 'bert, pipeline' 3 "${bert[@]}" --virtual-workers 0+1+2 --stage-units 1+2+1
same translation 1 "${numbers[@]}"
same translation 2 "${numbers[@]}" "${declared[@]}" --max-tokens 0=400,1=200
((differ == 0)) || { echo 'some models differ' >&2; exit 1; }
