#!/usr/bin/env bash
# A replica that several ranks train as a pipeline: the bytes of one rank, whatever the cut, runs that go on in other
# layouts after they were killed, and what is refused.
source "$(dirname "$0")/common.sh"
images=74
source "$(dirname "$0")/continued_runs.sh"

# same RUN OTHER: all that their last checkpoints hold of model and optimizer, and what training left.
same() {
  local file
  same_checkpoints "$1" "$2"
  for file in model best; do
    [[ ! -e $work/$1/$file.safetensors ]] || cmp "$work/$1/$file.safetensors" "$work/$2/$file.safetensors" ||
      fail "$2 does not have the $file of $1"
  done
}
says() { grep -qE -- "$1" "$work/log" || { cat "$work/log"; fail "expected: $1"; }; }

# MNIST's network has three units. Given cuts on two and three ranks, in any order of ranks, with validation and the best
# model.
options+=(--max-epoch 1 --clip-norm 0.5 --weight-decay 0.01 --threads 1 --precision fp32 --optimizer adamw --lr 0.001 --save-interval-updates 5)
units=3
train one 1
expect_ok one
train three 3 --virtual-workers 2+0+1 --stage-units 1+1+1
expect_ok 'three stages'
same one three
# Of three ranks two are the worker, and one has nothing to do.
train two 3 --virtual-workers 2+0 --stage-units 1+2
expect_ok 'two stages, and a rank is idle'
says 'one virtual worker of 2 stages, micro-batches of 2 samples'
same one two
# Each stage in the precision of its rank.
train mixed 3 --virtual-workers 0+1+2 --stage-units 1+1+1 --precision 0=bf16,1=fp32,2=bf16
expect_ok 'stages of unlike precisions'
python3 - "$work/one/metrics.jsonl" "$work/mixed/metrics.jsonl" <<'PY' || fail 'bf16 beside fp32 trains otherwise'
import json, sys
one, mixed = ([line["loss"] for line in map(json.loads, open(path)) if line["kind"] == "train"] for path in sys.argv[1:])
assert len(one) == len(mixed) and one != mixed, (one, mixed)
assert all(abs(a - b) <= 0.01 * a for a, b in zip(one[:4], mixed)), (one, mixed)
PY
# A cut by what was measured stays that of the run, also where a rank is left out.
train kept 3 --virtual-workers 0+2 --stop-after 2 --stop-exit-code 0
expect_ok 'a run that stops'
says 'left out: ranks? .*, for which'
says 'measuring the units'
says 'one virtual worker of [12] stages?, .*forward and backward should take'
micro_batch=$(sed -nE 's/^one virtual worker .*micro-batches of ([0-9]+) samples.*/\1/p' "$work/log")
settled=$(grep -E '^(stage-units|max-sentences|virtual-workers) =' "$work/kept/config.cfg")
train kept 3 --virtual-workers 0+2
expect_ok 'the same command again'
says 'continues from'
! grep -q 'measuring the units' "$work/log" || fail 'it was measured anew'
[[ $settled == "$(grep -E '^(stage-units|max-sentences|virtual-workers) =' "$work/kept/config.cfg")" ]] ||
  fail 'the cut is another one'
python3 - "$work/kept/summary.json" <<'PY' || fail 'a run that goes on has lost what was planned'
import json, sys
worker, = json.load(open(sys.argv[1]))["workers"]
assert worker["planned_ms"] > 0 and worker["ms"] > 0, worker
PY
train one-smaller 1 --max-sentences "$micro_batch"
expect_ok 'one rank in these micro-batches'
same one-smaller kept
# Whoever asks for other workers gets them; a dry run tries them and leaves the run as it is.
before=$(cd "$work/kept" && find . -type f -exec cksum {} + | sort)
train kept 3 --virtual-workers 0-2 --max-epoch 2 --dry-run
expect_ok 'a dry run of other workers'
says 'would continue from'
says 'measuring the units'
says 'one virtual worker of [123] stages?'
says 'forward and backward took .* \(planned: '
[[ $before == "$(cd "$work/kept" && find . -type f -exec cksum {} + | sort)" ]] || fail 'a dry run wrote'
train auto 2 --virtual-workers auto --stop-after 2 --stop-exit-code 0
expect_ok 'any layout'
says 'layouts, as planned; the first one is taken'
says 'data parallelism on all 2 ranks'
train auto 2 --virtual-workers auto --stop-after 2 --stop-exit-code 0
expect_ok 'the same layout'
says 'layouts, as planned; the first one is taken'
! grep -q 'measuring the units' "$work/log" || fail 'the layouts were measured anew'
# What was measured is enough to plan for other ranks.
printf '[device other]\nmeasured = %s\n[nodes other]\ncount = 5\n[job]\nbatch = 8\n' "$(hostname)" >"$work/other.cfg"
for run in auto kept; do # which may have replicas, and which has stages
  run_ranks 1 "$bin/hetseq" plan "$work/other.cfg" --from "$work/$run"
  expect_ok "a plan from the run $run"
  says 'layers: 3 units of the model in'
  says '^data parallelism on all 5 ranks'
done

run_ranks 1 "$bin/hetseq" predict "$work/three" --data "$work/data/t10k*.h5" --output "$work/three.h5"
expect_ok predict
run_ranks 1 "$bin/hetseq" predict "$work/one" --data "$work/data/t10k*.h5" --output "$work/one.h5"
expect_ok predict
"$bin/predictions" same "$work/one.h5" "$work/three.h5" || fail 'other predictions'

# From three stages to one rank, two stages, two replicas and three stages again. Each run but the last is killed or
# stopped; every cut of every batch has the bytes of one rank until the replicas come.
goes_on() { expect_ok "$1"; says 'continues from'; }
rc=0
HETSEQ_FAULT=1:computing:18:kill timeout 300 mpirun -np 3 -x HETSEQ_FAULT "$bin/hetseq_faulty" train "${options[@]}" \
  --save-dir "$work/many" --virtual-workers 0+1+2 --stage-units 1+1+1 >"$work/log" 2>&1 || rc=$?
((rc == 137)) || { cat "$work/log"; fail "exit code $rc of a killed stage"; }
train many 1 --stop-after 2
((rc == 75)) || { cat "$work/log"; fail "exit code $rc after --stop-after"; }
says 'continues from'
train many 2 --virtual-workers 1+0 --stage-units 2+1
goes_on 'in two stages'
same one many
options+=(--max-epoch 2)
train one 1
expect_ok 'the whole, on one rank'
train many 2 --balance auto --stop-after 12
((rc == 75)) || { cat "$work/log"; fail "exit code $rc after --stop-after"; }
train many 3 --virtual-workers 0+1+2 --stage-units 1+1+1
goes_on 'in three stages again'
"$bin/compare_models" "$work/one/model.safetensors" "$work/many/model.safetensors" 1e-3 || fail 'another model'

# BERT, whose decoder shares the embeddings' matrix, and validation.
make_bert
bert=(--task bert --model-config "$work/small.json" --data "$work/bert/train*.h5" --valid-data "$work/bert/train*.h5"
  --max-sentences 2 --seed 3 --batch-size 4 --max-update 6 --threads 1 --log-interval 2 --precision fp64)
run_ranks 1 "$bin/hetseq" train "${bert[@]}" --save-dir "$work/bert-1"
expect_ok 'BERT on one rank'
run_ranks 3 "$bin/hetseq" train "${bert[@]}" --save-dir "$work/bert-3" --virtual-workers 0-2
expect_ok 'BERT on three ranks'
"$bin/compare_models" "$work/bert-1/model.safetensors" "$work/bert-3/model.safetensors" 1e-9 || fail 'another BERT on three ranks'

train wrong 2 --virtual-workers 0+2
expect_error 78 "'2' is not within the job's 2 ranks"
train wrong 2 --virtual-workers 0+1 --stage-units 2+2
expect_error 78 "the model has $units"
[[ ! -e $work/wrong/checkpoints ]] || fail 'a start that failed left checkpoints'
