#!/usr/bin/env bash
# Whole runs of the program over the stand-ins of CUDA and NCCL, against the same run on one CPU.
source "$(dirname "$0")/common.sh"
source "$(dirname "$0")/stand_in_runs.sh"
make_some_images 600 40
options=(--task mnist --save-minutes 0 --precision fp64 --data "$work/data/train*.h5" --valid-data "$work/data/t10k*.h5" --max-sentences 8
  --batch-size 16 --max-update 6 --log-interval 3 --seed 3)

whole=("${options[@]}")

train cpu 1 --device cpu

train gpus 2 --device cuda
same gpus

train mixed 3 --device 0-1=cuda,2=cpu
says 'no GPU is used by rank 2'
same mixed

# The optimizer's state cut over GPUs, and over GPUs and a CPU, whose files are those of any other run. A run goes on with
# other parts on other devices.
train sharded 2 --device cuda --shard optimizer --shard-by 0=1,1=3 --clip-norm 0.5
train clipped 1 --device cpu --clip-norm 0.5
same sharded clipped
train sharded-mixed 3 --device 0-1=cuda,2=cpu --shard optimizer --shard-by 0=1,1=0,2=2 --clip-norm 0.5 --optimizer sgd \
  --stop-exit-code 0 --stop-after 3
train sharded-mixed 2 --device 0=cpu,1=cuda --shard optimizer --shard-by even --clip-norm 0.5 --optimizer sgd
train sgd 1 --device cpu --clip-norm 0.5 --optimizer sgd
same sharded-mixed sgd

# Stages of a pipeline on GPUs, on GPUs beside a CPU, and, where the cut is measured, on some of these. A run goes on with
# other stages on other devices.
train stages 2 --device cuda --virtual-workers 0+1 --stage-units 1+2
same stages
train stages-mixed 3 --device 0=cuda,1=cpu,2=cuda --virtual-workers 0-2 --stage-units 1+1+1 --stop-exit-code 0 --stop-after 3
train stages-mixed 2 --device 0=cpu,1=cuda --virtual-workers 0-1 --stage-units 2+1
same stages-mixed
train stages-measured 2 --device cuda --virtual-workers 0-1
says 'one virtual worker of'

# With measured shares, ranks on CPUs stay where they make an update faster, and are left out where sums through host
# memory cost more than they do. Then the others are numbered anew, and a run that stops says so.
measured=(--balance auto --cache-dir none)
train worth-it 2 --device 0=cuda,1=cpu "${measured[@]}" --batch-size 200
! grep -q 'left out' "$work/log" || { cat "$work/log"; fail 'a CPU as fast as the GPU was left out'; }
STAND_IN_NCCL_KERNEL_US=60000 train slow-sums 3 --device 0=cpu,1-2=cuda "${measured[@]}" --max-sentences 0=4,1-2=6
says 'left out: rank 0 on CPUs, since an update takes'
says 'global batch 16, balance auto'
same slow-sums
rm "$work"/{output,errors,log}
STAND_IN_NCCL_KERNEL_US=60000 run_ranks 3 "$bin/hetseq_stand_in" train "${options[@]}" --save-dir "$work/stopped" \
  --device 0-1=cuda,2=cpu "${measured[@]}" --max-update 100000 --log-interval 1 &
for ((i = 0; i < 1200; ++i)); do
  ! grep -qs 'update 3/' "$work"/{output,errors} || break
  sleep 0.1
done
# To the rank that was left out, alone: the others hear of it.
left_out=
for process in /proc/[0-9]*; do
  if grep -aqsF "$work/stopped" "$process/cmdline" && grep -aqsz '^OMPI_COMM_WORLD_RANK=2$' "$process/environ"; then
    left_out=${process#/proc/}
  fi
done
kill -USR1 "$left_out"
wait $! || true
says 'left out: rank 2 on CPUs'
says 'stops, asked to by'
says 'exit code 75 says that the run stopped as planned'
[[ ! -e $work/stopped/STOP ]] || fail 'the file that asks to stop is still there'

# A rank without a GPU of its own is on its CPU; it shares one where it must have one.
STAND_IN_GPUS=1 train automatic 2
says 'no GPU is used by rank 1'
same automatic
STAND_IN_GPUS=1 train shared 2 --device cuda --balance auto
says 'one GPU is shared by ranks 0, 1'
same shared
# Each rank sees one slice of a GPU (MIG). Two slices are of one GPU, from which NCCL takes a single rank.
# shellcheck disable=SC2016
printf '%s\n' '#!/bin/sh' 'export STAND_IN_GPUS=1 STAND_IN_FIRST_UUID=$OMPI_COMM_WORLD_RANK' 'exec "$@"' >"$work/one-slice"
chmod +x "$work/one-slice"
launcher=$work/one-slice STAND_IN_MIG_SLICES=2 train slices 3 --device auto
says 'one GPU is shared by ranks 0, 1'
says 'MIG 1g.5gb'
! grep -q 'no GPU is used' "$work/log" || { cat "$work/log"; fail 'a slice was not used'; }
same slices

# What a user of real machines may meet: no driver, a GPU that is too old, unlike versions of NCCL, a rank whose NCCL fails.
refused() { # EXIT_CODE TEXT OPTION...
  local code=$1 text=$2; shift 2
  run_ranks 2 "$bin/hetseq_stand_in" train "${options[@]}" --save-dir "$work/refused" "$@"
  expect_error "$code" "$text"
}
STAND_IN_DRIVER=0 refused 71 'no NVIDIA driver is installed' --device cuda
STAND_IN_CAPABILITY=5.0 refused 71 'its compute capability is 5.0' --device cuda
STAND_IN_NCCL_INIT_FAILS_ON=1 refused 71 'NCCL' --device cuda
# shellcheck disable=SC2016
printf '%s\n' '#!/bin/sh' 'export STAND_IN_NCCL_VERSION=2210$OMPI_COMM_WORLD_RANK' 'exec "$@"' >"$work/own-nccl"
chmod +x "$work/own-nccl"
launcher=$work/own-nccl train versions 2 --device cuda
says 'unlike versions of NCCL are loaded: 2.21.0 by rank 0, 2.21.1 by rank 1'
same versions

# One update in fp32.
options+=(--max-update 1)
single=("${options[@]/fp64/fp32}")
options=("${single[@]}")
train single-cpu 1 --device cpu
train single-mixed 3 --device 0-1=cuda,2=cpu
"$bin/compare_models" "$work/single-cpu/model.safetensors" "$work/single-mixed/model.safetensors" 1e-6 || fail 'fp32 differs'
options=("${whole[@]}")

# What a profiler is shown.
NVTX_INJECTION64_PATH=$bin/libstand_in_profiler.so STAND_IN_RANGES=$work/ranges train profiled 1 --device cuda --max-update 2
shows() { grep -qxE -- "$1" "$work/ranges" || { cat "$work/ranges"; fail "no range of $1"; }; }
for range in 'begins computing 1' 'begins optimizing 2' 'begins reducing 2' 'opens micro-batch 1' 'opens copy ahead 0' \
  'opens start bucket 0'; do
  shows "hetseq: $range"
done
# A GPU has the optimizer's work before the host knows the verdict.
work_of_device=$(grep -oE '(opens step behind the gate|begins (reducing|optimizing)) .*' "$work/ranges" | tr '\n' ',')
[[ $work_of_device == *'begins reducing 1,opens step behind the gate 0,begins optimizing 1,'* ]] ||
  fail "the optimizer and its phases: $work_of_device"
phases=$(sed -n 's/.* begins //p' "$work/ranges" | tr '\n' ',')
[[ $phases == *',reducing 1,optimizing 1,loading 2,agreeing 2,'* ]] || fail "phases: $phases"
begun=$(grep -c ' begins ' "$work/ranges") ended=$(grep -c ' ends$' "$work/ranges")
((begun == ended + 1)) || fail "$begun phases began and $ended ended"
(($(grep -c ' opens ' "$work/ranges") == $(grep -c ' closes$' "$work/ranges"))) || fail 'a range was not closed'

# Stopped on GPUs and continued on other devices.
train moved 2 --device cuda --max-update 3
train moved 2 --device 0=cpu,1=cuda
says 'continues from'
same moved

run_ranks 2 "$bin/hetseq_stand_in" train "${options[@]}" --save-dir "$work/wrong" --device 0=cuda
expect_error 78 "--device has no entry for rank 1"
run_ranks 2 "$bin/hetseq_stand_in" train "${options[@]}" --save-dir "$work/wrong" --device gpu
expect_error 78 "one of auto, cpu, cuda"
