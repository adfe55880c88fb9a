#!/usr/bin/env bash
# What a pretraining is worth: BERT mini on novels (inputs/bert-mini-novels.cfg), then names of diseases from that network
# and from scratch, once for each seed. Prints each fine-tuning's F1 on the test set, at the epoch that was best in
# validation. What is already done in data/ and runs/ is not done again.
set -euo pipefail
source "$(dirname "$0")/../common.sh"

usage='usage: jobs/compare/pretraining.sh [SEEDS [EPOCHS]]     (default: 3 4)
environment:
  HETSEQ_TEST_DATA   folder with text/novels.txt.xz, bert/vocab.txt and ner/ncbi-disease (default ../shared/data)
  LR, LR_SCRATCH     learning rates from the pretrained network and from scratch (default 5e-4 for both)
  UPDATES            of the pretraining, 300 or more (default 5800)'
[[ ${1-} != -h && ${1-} != --help ]] || { echo "$usage"; exit 0; }
seeds=${1:-3}
epochs=${2:-4}
updates=${UPDATES:-5800}
[[ $seeds =~ ^[1-9][0-9]*$ && $epochs =~ ^[1-9][0-9]*$ && $updates =~ ^([3-9][0-9]{2}|[1-9][0-9]{3,})$ ]] || { echo "$usage" >&2; exit 64; }

source=$(realpath -m "${HETSEQ_TEST_DATA:-../shared/data}")
[[ -e $source/text/novels.txt.xz && -e $source/bert/vocab.txt && -d $source/ner/ncbi-disease ]] || {
  echo "$source lacks text/novels.txt.xz, bert/vocab.txt or ner/ncbi-disease: set HETSEQ_TEST_DATA" >&2
  exit 66
}
pretrained=runs/bert-mini-novels-64
hetseq=build/cpu/bin/hetseq

# data/novels-64: pairs of 64 tokens of 100 novels. The last two novels are held out, and a part of each validates.
prepare_novels() {
  ! compgen -G 'data/novels-64/train*.h5' >/dev/null || return 0
  say 'preparing the novels'
  mkdir -p data/novels-64
  xzcat "$source/text/novels.txt.xz" | awk '
    BEGIN { out = "data/novels-64/train.txt" }
    /^To the Lighthouse THE WINDOW/ { out = "data/novels-64/held-out.txt" }
    { print > out }'
  { head -n 2000 data/novels-64/held-out.txt; echo; tail -n 2000 data/novels-64/held-out.txt; } >data/novels-64/valid.txt
  "$hetseq" prepare bert --input data/novels-64/train.txt --valid-input data/novels-64/valid.txt \
    --vocab "$source/bert/vocab.txt" --dupe-factor 1 --seq-length 64 --masked-lm-prob 0.3 --max-predictions 20 \
    --output data/novels-64
}

prepare_diseases() {
  local text=$source/ner/ncbi-disease
  ! compgen -G 'data/disease/train*.h5' >/dev/null || return 0
  "$hetseq" prepare ner --input "$text/train.tsv.gz" --valid-input "$text/devel.tsv.gz" \
    --test-input "$text/test.tsv.gz" --vocab "$source/bert/vocab.txt" --output data/disease
}

# fine_tune START SEED LR ARGUMENT...: one rank on one core; prints a line with the F1 of its best epoch on the test set.
# Both starts have the same dropouts: without them, the pretrained network would bring its own.
fine_tune() {
  local start=$1 seed=$2 lr=$3 scores; shift 3
  local run=runs/diseases/$start-$lr-$epochs-$seed
  "$hetseq" train --task token-classification "$@" --data 'data/disease/train*.h5' \
    --valid-data 'data/disease/valid*.h5' --lr "$lr" --max-epoch "$epochs" --warmup-updates 100 --batch-tokens 1024 \
    --dropout 0.1 --attention-dropout 0.1 --best-by f1:max --seed "$seed" --threads 1 --save-dir "$run" \
    >"$run.log" 2>&1 || { cat "$run.log" >&2; return 1; }
  scores=$("$hetseq" evaluate --task token-classification --init-model "$run/best.safetensors" \
    --data 'data/disease/test*.h5' --threads 1 --json)
  python3 -c 'import json, sys
print("| {} | {} | {} | {:.3f} |".format(*sys.argv[1:4], json.loads(sys.argv[4])["f1"]))' \
    "$start" "$seed" "$lr" "$scores"
}

configure_and_build cpu hetseq
allow_ranks 2
export OMP_NUM_THREADS=1
prepare_novels
prepare_diseases
say 'pretraining'
mpirun -np 2 "$hetseq" train inputs/bert-mini-novels.cfg --threads 1 --data 'data/novels-64/train*.h5' \
  --valid-data 'data/novels-64/valid*.h5' --max-update "$updates" --save-dir "$pretrained"
say "fine-tuning, $epochs epochs"
mkdir -p runs/diseases
echo '| start | seed | learning rate | F1 of the test set |'
echo '|---|---|---|---|'
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
for ((seed = 1; seed <= seeds; ++seed)); do
  fine_tune pretrained "$seed" "${LR:-5e-4}" --init-model "$pretrained" &
  of_pretrained=$!
  fine_tune scratch "$seed" "${LR_SCRATCH:-5e-4}" --model-config mini &
  wait $of_pretrained
  wait $!
done
