#!/usr/bin/env bash
# Models of transformers as pipelines of 2 and 3 stages beside one rank: how far apart all parameters are after 5 updates
# of SGD in fp32, with dropout, texts of unequal length, and micro-batches in flight. Prints Markdown, and fails where
# they are more than 1e-5 apart.
set -euo pipefail
shopt -s inherit_errexit

usage='usage: jobs/compare/huggingface_pipelines.sh [TASK...]     (of huggingface_tasks.py; default: all)
Needs build/python (jobs/setup.sh --python).
environment:
  HETSEQ   the program (build/cpu/bin/hetseq), with libhetseq_python.so in ../lib'
[[ ${1-} != -h && ${1-} != --help ]] || { echo "$usage"; exit 0; }
source "$(dirname "$0")/../common.sh"
names=("$@")
((${#names[@]})) ||
  names=(Gpt2 Gpt2Untied Llama LlamaUntied Qwen2 Qwen2Untied Bert BertUntied Roberta RobertaUntied ViT)
use_hetseq_of_python
allow_ranks 3
tasks=$PWD/jobs/compare/huggingface_tasks.py
work=$PWD/build/compare/huggingface-pipelines
rm -rf "$work"
mkdir -p "$work"
"$python" "$tasks" data "$work"

# train NAME RANKS UNITS: five updates of 32 samples by 4.
train() {
  local run=$work/$1-$2 data=words cut=()
  [[ $1 != ViT ]] || data=images
  (($2 == 1)) || cut=(--virtual-workers "0-$(($2 - 1))" --stage-units "$3")
  echo "${run##*/}" >&2
  mpirun -np "$2" "$hetseq" train "$tasks:$1" --data "$work/$data-*.h5" --batch-size 32 --max-sentences 4 --max-update 5 \
    --optimizer sgd --lr 0.1 --threads 1 --save-interval 0 --save-minutes 0 "${cut[@]}" --save-dir "$run" >"$run.log" 2>&1 || { cat "$run.log" >&2; return 1; }
}

echo '| model | 2 stages: 3+3 units | 3 stages: 1+3+2 |'
echo '|---|---|---|'
failed=0
for name in "${names[@]}"; do
  train "$name" 1 all
  train "$name" 2 3+3
  train "$name" 3 1+3+2
  row="| $name"
  for ranks in 2 3; do
    row+=" | $("$python" "$tasks" difference "$work/$name-1" "$work/$name-$ranks")" || failed=1
  done
  echo "$row |"
done
exit $failed
