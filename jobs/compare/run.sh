#!/usr/bin/env bash
# hetseq against PyTorch's DistributedDataParallel on this machine: 2 ranks of 1 thread, the same model, batch, data and
# optimizer, in turns. Prints samples per second of each and the ratio. Keep the machine otherwise idle.
set -euo pipefail
source "$(dirname "$0")/../common.sh"

usage='usage: jobs/compare/run.sh [mnist|bert|translation|gpt2|resnet|all] [ROUNDS]     (default: all 5)
environment:
  HETSEQ_TEST_DATA   folder with bert/*.hdf5, multi30k/*.gz and text/novels-small.txt (default ../shared/data); what it
                     lacks is not compared'
[[ ${1-} != -h && ${1-} != --help ]] || { echo "$usage"; exit 0; }
what=${1:-all}
rounds=${2:-5}
[[ $what =~ ^(mnist|bert|translation|gpt2|resnet|all)$ && $rounds =~ ^[1-9][0-9]*$ ]] || { echo "$usage" >&2; exit 64; }

python=build/compare/bin/python
results=build/compare/results.jsonl
bert_shards=$(realpath -m "${HETSEQ_TEST_DATA:-../shared/data}")/bert

set_up() {
  jobs/setup.sh
  configure_and_build cpu hetseq batch_lists
  if [[ ! -e build/compare/complete ]]; then
    say 'installing PyTorch and transformers into build/compare'
    python3 -m venv build/compare || { echo 'install python3-venv' >&2; exit 69; }
    "$python" -m pip install --quiet torch==2.11.0 'transformers==5.*' accelerate h5py numpy
    touch build/compare/complete
  fi
  prepare_fashion_mnist
  : >"$results"
}

# measure NAME PROGRAM...: its JSON as one line of the results, under that name.
measure() {
  local name=$1; shift
  printf '%s ' "$name" >&2
  mpirun -np "${ranks:-2}" "$@" | "$python" jobs/compare/table.py --append "$results" "$name"
}
ours() { measure "$1 hetseq" build/cpu/bin/hetseq bench step --json --threads 1 "${@:2}"; }

mnist_round() { # PER_RANK UPDATES
  local files='data/fashion-mnist/train*.h5' name="mnist, $1 a rank:"
  ours "$name" --task mnist --data "$files" --batch-size $(($1 * 2)) --max-sentences "$1" --max-update "$2"
  measure "$name DDP" "$python" jobs/compare/mnist_ddp.py "$files" --batch "$1" --updates "$2"
  measure "$name DDP, tuned" "$python" jobs/compare/mnist_ddp.py "$files" --batch "$1" --updates "$2" --tuned
}
bert_round() { # NAME FILES PER_RANK UPDATES
  local name="bert mini, $3 a rank, $1:"
  ours "$name" --task bert --model-config mini --data "$2" --batch-size $(($3 * 2)) --max-sentences "$3" \
    --max-update "$4" --optimizer adamw
  measure "$name DDP" "$python" jobs/compare/bert_ddp.py "$2" --batch "$3" --updates $(($4 / 2))
  measure "$name DDP, tuned" "$python" jobs/compare/bert_ddp.py "$2" --batch "$3" --updates "$4" --tuned
}

# The very batches of both: hetseq's, 0.9 times 2 x 4,096 target tokens.
translation_round() { # UPDATES
  local files='data/multi30k/train*.h5' name='translation tiny, 7372 tokens:'
  ours "$name" --task translation --model-config tiny --dropout 0.3 --data "$files" --batch-tokens 7372 \
    --max-tokens 4096 --balance equal --max-update "$1"
  measure "$name DDP" "$python" jobs/compare/translation_ddp.py "$files" --batches "$lists"
  measure "$name DDP, tuned" "$python" jobs/compare/translation_ddp.py "$files" --batches "$lists" --tuned
}
# A task in Python beside the same module under DistributedDataParallel. Then what the bridge costs: one rank, updates of
# about 20 ms, beside the same module in plain PyTorch, without dropout and with it.
gpt2_round() { # PER_RANK UPDATES
  local files='data/gpt2/train*.h5' name="gpt2, $1 a rank:" dropout task=inputs/python/gpt2.py:Gpt2
  measure "$name hetseq" build/cpu/bin/hetseq bench step $task --json --threads 1 --data "$files" \
    --batch-size $(($1 * 2)) --max-sentences "$1" --max-update "$2"
  measure "$name DDP" "$python" jobs/compare/gpt2_ddp.py "$files" --batch "$1" --updates "$2"
  measure "$name DDP, tuned" "$python" jobs/compare/gpt2_ddp.py "$files" --batch "$1" --updates "$2" --tuned
  for dropout in 0 0.1; do
    name="gpt2, one rank, dropout $dropout:"
    ranks=1 measure "$name hetseq" build/cpu/bin/hetseq bench step $task --json --threads 1 --data "$files" --width 64 \
      --layers 1 --dropout $dropout --batch-size 2 --max-sentences 2 --max-update 200
    ranks=1 measure "$name PyTorch" "$python" jobs/compare/gpt2_ddp.py "$files" --plain --width 64 --layers 1 \
      --dropout $dropout --batch 2 --updates 200 --tuned
  done
}
# Batch normalisation by groups of a rank's batch, which is what DDP normalises.
resnet_round() { # PER_RANK UPDATES
  local files='data/fashion-mnist/train*.h5' name="resnet, $1 a rank:"
  measure "$name hetseq" build/cpu/bin/hetseq bench step inputs/python/gallery/resnet.py:ResNet --json --threads 1 \
    --data "$files" --norm-group "$1" --batch-size $(($1 * 2)) --max-sentences "$1" --max-update "$2"
  measure "$name DDP" "$python" jobs/compare/resnet_ddp.py "$files" --batch "$1" --updates "$2"
  measure "$name DDP, tuned" "$python" jobs/compare/resnet_ddp.py "$files" --batch "$1" --updates "$2" --tuned
  measure "$name Accelerate, tuned" "$python" jobs/compare/resnet_ddp.py "$files" --batch "$1" --updates "$2" --tuned \
    --accelerate
}
# Pairs of any length alike, so that half of a row of 128 is padding. Both programs read the same rows.
prepare_half_full() {
  local text=$bert_shards/../text/novels-small.txt
  ! compgen -G 'data/bert-half-full/train*.h5' >/dev/null || return 0
  [[ -e $text ]] || { echo "there is no $text: pairs that are half full are not compared"; return 0; }
  say 'preparing pairs that fill half of their rows'
  build/cpu/bin/hetseq prepare bert --input "$text" --vocab "$bert_shards/vocab.txt" \
    --short-seq-prob 1 --dupe-factor 2 --output data/bert-half-full
}
compares() { [[ $what == all || $what == "$1" ]]; }

set_up
allow_ranks 2
export OMP_NUM_THREADS=1
if compares bert && [[ ! -d $bert_shards ]]; then
  echo "no BERT shards in HETSEQ_TEST_DATA ($bert_shards): bert is not compared"
  [[ $what == all ]] || exit 0
  bert_shards=
fi
if compares bert && [[ -n $bert_shards ]]; then prepare_half_full; fi
has_gpt2=no
if compares gpt2 || compares resnet; then
  jobs/setup.sh --python
  configure_and_build cpu hetseq_python
  export PYTHONPATH=$PWD/python HETSEQ_PYTHON=$PWD/build/python/bin/python
fi
if compares gpt2 && prepare_gpt2; then has_gpt2=yes; fi
translation_updates=30
lists=build/compare/batches.jsonl
if compares translation && prepare_multi30k; then
  build/cpu/bin/batch_lists translation 'data/multi30k/train*.h5' 7372 $translation_updates 1 >"$lists"
else
  lists=
fi
for ((round = 1; round <= rounds; ++round)); do
  say "round $round of $rounds"
  if compares mnist; then
    mnist_round 32 400
    mnist_round 128 100
  fi
  if compares bert && [[ -n $bert_shards ]]; then
    bert_round "the shards' padding" "$bert_shards/*.hdf5" 16 40
    ! compgen -G 'data/bert-half-full/train*.h5' >/dev/null || bert_round 'half full' 'data/bert-half-full/train*.h5' 16 40
  fi
  if compares translation && [[ -n $lists ]]; then
    translation_round $translation_updates
  fi
  if [[ $has_gpt2 == yes ]]; then
    gpt2_round 16 20
  fi
  if compares resnet; then
    resnet_round 32 12
  fi
done
say "samples per second of 2 ranks, 1 thread each, on $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)"
"$python" jobs/compare/table.py "$results"
