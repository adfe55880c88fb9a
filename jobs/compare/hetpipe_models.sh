#!/usr/bin/env bash
# HetPipe's own models, ResNet-152 and VGG-19 of torchvision, through virtual workers of unlike cuts: how far parameters and
# running statistics are from one rank's after 5 updates of SGD, with batch normalisation by groups of 8 and dropout. How a
# batch is cut over workers rounds, and a deep network may multiply roundings. So workers are also compared with ranks that
# hold whole replicas and have the same shares. Prints Markdown, and fails where these are more than 1e-5 apart.
set -euo pipefail
shopt -s inherit_errexit

usage='usage: jobs/compare/hetpipe_models.sh [TASK...]     (of hetpipe_tasks.py; default: all)
Needs build/python (jobs/setup.sh --python) with torchvision.
environment:
  HETSEQ     the program (build/cpu/bin/hetseq), with libhetseq_python.so in ../lib
  SIZE       pixels of a side (64)
  LR         learning rate (0.01)
  CLIP       largest norm of the gradient (0: any)
  PRECISION  (fp32)'
[[ ${1-} != -h && ${1-} != --help ]] || { echo "$usage"; exit 0; }
source "$(dirname "$0")/../common.sh"
names=("$@")
((${#names[@]})) || names=(ResNet152 ResNet152ZeroInit Vgg19 Vgg19Bn)
size=${SIZE:-64} rate=${LR:-0.01} clip=${CLIP:-0} precision=${PRECISION:-fp32}
use_hetseq_of_python
"$python" -c 'import torchvision' ||
  { echo 'build/python has no torchvision (its reason is above): jobs/setup.sh --python installs it where pip can' >&2; exit 69; }
allow_ranks 4
tasks=$PWD/jobs/compare/hetpipe_tasks.py
work=$PWD/build/compare/hetpipe-models-$precision
rm -rf "$work"
mkdir -p "$work"
"$python" "$tasks" data "$work" "$size"

# train NAME LAYOUT RANKS [OPTION...]: five updates of 32 images in groups of 8.
train() {
  local run=$work/$1-$2 ranks=$3; shift 3
  echo "${run##*/} (load $(cut -d ' ' -f 1 /proc/loadavg))" >&2
  mpirun -np "$ranks" nice "$hetseq" train "$tasks:$name" --data "$work/images-*.h5" --batch-size 32 --norm-group 8 \
    --balance declared --max-update 5 --optimizer sgd --lr "$rate" --clip-norm "$clip" --precision "$precision" --threads 1 --log-interval 1 \
    --save-interval 0 --save-minutes 0 "$@" --save-dir "$run" >"$run.log" 2>&1 || { cat "$run.log" >&2; return 1; }
}

# cuts NAME: units of two stages, of two others, and of three.
cuts() {
  case $1 in
    ResNet152*) echo '20+32 33+19 14+22+16' ;;  # front, 50 blocks, back
    ResNet50*) echo '7+11 10+8 5+7+6' ;;        # front, 16 blocks, back
    EfficientNet) echo '4+7 7+4 3+4+4' ;;       # front, 9 stages, back
    Vgg19) echo '12+34 25+21 8+16+22' ;;        # front, 44 layers, back
    Vgg19Bn) echo '15+47 35+27 10+22+30' ;;     # front, 60 layers, back
    *) echo "no cut is known for $1: take a task of hetpipe_tasks.py" >&2; return 64 ;;
  esac
}

# apart NAME A B: of parameters, and behind a slash of running statistics.
apart() { "$python" "$tasks" difference "$work/$1-$2" "$work/$1-$3"; }

# alike NAME A B: the same, where both have the same cut of each batch.
alike() { "$python" "$tasks" difference "$work/$1-$2" "$work/$1-$3" 1e-5; }

echo '| model | 1 worker of 3 stages | 2 workers of 2 | 3 stages, and a rank alone | 2 of 2, shares of 8 and 24 | replicas, 16 and 16 | replicas, 8 and 24 | workers from replicas |'
echo '|---|---|---|---|---|---|---|---|'
failed=0
for name in "${names[@]}"; do
  cut=$(cuts "$name")
  read -r two others three <<<"$cut"
  train "$name" one 1 --max-sentences 8
  train "$name" halves 2 --max-sentences 8
  train "$name" quarters 2 --max-sentences 0=8,1=24
  train "$name" three 3 --max-sentences 8 --virtual-workers 0+1+2 --stage-units "$three"
  train "$name" twos 4 --max-sentences 8 --virtual-workers 0+1,2+3 --stage-units "$two,$others"
  train "$name" alone 4 --max-sentences 8 --virtual-workers 0+1+2,3 --stage-units "$three,$((${two%+*} + ${two#*+}))"
  train "$name" unequal 4 --max-sentences 0=8,1=8,2=24,3=24 --virtual-workers 0+1,2+3 --stage-units "$two,$others"
  row="| $name | $(alike "$name" one three)" || failed=1
  for layout in twos alone unequal halves quarters; do
    row+=" | $(apart "$name" one "$layout")"
  done
  row+=" |"
  for pair in 'halves twos' 'halves alone' 'quarters unequal'; do
    read -r replicas workers <<<"$pair"
    row+=" $(alike "$name" "$replicas" "$workers");" || failed=1
  done
  echo "${row%;} |"
  rm -rf "$work/$name"-*/model.safetensors "$work/$name"-*/checkpoints
done
exit $failed
