#!/usr/bin/env bash
# Whole runs over the stand-ins of CUDA and NCCL in which memory is short, and runs of BERT, against the same runs on one CPU.
source "$(dirname "$0")/common.sh"
source "$(dirname "$0")/stand_in_runs.sh"
make_some_images 600 40
options=(--task mnist --save-minutes 0 --precision fp64 --data "$work/data/train*.h5" --valid-data "$work/data/t10k*.h5" --max-sentences 8
  --batch-size 16 --max-update 10 --log-interval 5 --seed 3)

measured=(--balance auto --cache-dir none)

# Memory that does not suffice for a micro-batch: smaller ones, and the same gradient.
larger=(--max-sentences 150 --batch-size 300 --balance equal --max-update 3)
train larger-cpu 1 --device cpu "${larger[@]}"
STAND_IN_MEMORY_MB=100 train tight 2 --device cuda "${larger[@]}"
says 'out of memory: micro-batch halved'
same tight larger-cpu
STAND_IN_MEMORY_MB=100 train tight-stages 2 --device cuda "${larger[@]}" --virtual-workers 0+1 --stage-units 1+2
says 'out of memory: micro-batch halved'
same tight-stages larger-cpu

# What calibration took beyond the needs of training is given back.
printf '%s\n' '#!/bin/sh' "export STAND_IN_COUNTS=$work/counts.\$OMPI_COMM_WORLD_RANK" 'exec "$@"' >"$work/counting"
chmod +x "$work/counting"
large=(--device cuda --max-sentences 200 --batch-size 200 --max-update 2)
memory_left() { awk '$1 == "memory" { sum += $3 } END { print sum }' "$work"/counts.{0,1}; }
launcher=$work/counting train declared 2 "${large[@]}" --balance declared
declared=$(memory_left)
launcher=$work/counting train calibrated 2 "${large[@]}" "${measured[@]}"
calibrated=$(memory_left)
((2 * calibrated < 3 * declared)) || fail "$calibrated bytes are taken after calibration, $declared without"

# BERT, with its dropouts.
make_bert
options=(--task bert --model-config tiny --precision fp64 --data "$work/bert/train*.h5" --max-sentences 8 --batch-size 16
  --max-update 5 --log-interval 5 --seed 3)
train bert-cpu 1 --device cpu
train bert-gpus 2 --device cuda
same bert-gpus bert-cpu
train bert-mixed 4 --device 0-2=cuda,3=cpu
same bert-mixed bert-cpu
train bert-stages 3 --device 0-1=cuda,2=cpu --virtual-workers 0-2 --stage-units 1+2+1
same bert-stages bert-cpu
