#!/usr/bin/env bash
# Several virtual workers, cut in unlike ways: what one rank trains, over a kill and from layout to layout; shares that are
# followed, recorded and repeated; validation and the best model.
source "$(dirname "$0")/common.sh"
images=100
source "$(dirname "$0")/continued_runs.sh"

says() { grep -qE -- "$1" "$work/log" || { cat "$work/log"; fail "expected: $1"; }; }
near() { "$bin/compare_models" "$work/$1/model.safetensors" "$work/$2/model.safetensors" "$3" || fail "$2 has another model than $1"; }

# By SGD: Adam would make more of the roundings that other cuts have.
options+=(--max-epoch 1 --clip-norm 0.5 --optimizer sgd --momentum 0.9 --lr 0.01 --threads 1 --save-interval-updates 2 --batch-size 10
  --log-interval 1)
train one 1
expect_ok one
train unlike 4 --virtual-workers 2+0,1+3 --stage-units 1+2,2+1 --max-sentences 0=2,1=3,2=4,3=3
expect_ok 'two workers of two stages'
says 'virtual worker 0 of 2 stages, micro-batches of 2 samples'
says 'virtual worker 1 of 2 stages, micro-batches of 3 samples'
near one unlike 1e-12
[[ -s $work/unlike/allocations.json && -s $work/unlike/best.safetensors ]] || fail 'shares or the best model are not kept'
# A worker of one rank beside one of three, and a rank that nobody asked for. Shares follow the speeds.
train followed 5 --virtual-workers 4,0+3+1 --stage-units 3,1+1+1 --balance auto
expect_ok 'one rank beside three'
says 'left out: rank 2'
near one followed 1e-12
# What was recorded is repeated, with the same bits.
train repeated 4 --balance "file:$work/followed/allocations.json" --virtual-workers 3,0+2+1 --stage-units 3,1+1+1
expect_ok 'recorded shares again'
cmp "$work/followed/model.safetensors" "$work/repeated/model.safetensors" || fail 'recorded shares gave other bits'

# Killed in a stage of the second worker, then continued by replicas, by three workers, and by the two workers that
# another run's config.cfg names.
rc=0
HETSEQ_FAULT=3:computing:8:kill timeout 300 mpirun -np 4 -x HETSEQ_FAULT "$bin/hetseq_faulty" train "${options[@]}" \
  --save-dir "$work/many" --virtual-workers 0+1,2+3 --stage-units 1+2,2+1 >"$work/log" 2>&1 || rc=$?
((rc == 137)) || { cat "$work/log"; fail "exit code $rc of a killed stage"; }
says 'rank 3 .*signal 9'
train many 2 --stop-after 1
((rc == 75)) || { cat "$work/log"; fail "exit code $rc after --stop-after"; }
says 'continues from'
train many 4 --virtual-workers 3+2,1,0 --stage-units 2+1,3,3 --stop-after 1
((rc == 75)) || { cat "$work/log"; fail "exit code $rc after --stop-after"; }
says 'continues from'
run_ranks 4 "$bin/hetseq" train "$work/unlike/config.cfg" --save-dir "$work/many"
expect_ok 'what config.cfg says'
says 'continues from'
says 'virtual worker 0 of 2 stages, micro-batches of 2 samples'
says 'virtual worker 1 of 2 stages, micro-batches of 3 samples'
near one many 1e-12

train wrong 3 --virtual-workers 0+1,2 --stage-units 1+2,4
expect_error 78 'of 4 units together'
[[ ! -e $work/wrong/checkpoints ]] || fail 'a start that failed left checkpoints'
