#!/usr/bin/env bash
# Samples of unequal length: batches counted in tokens give one rank's parameters on any ranks (fp64, dropout on), a run
# continues in the middle of a window on other ranks, long samples are refused or left out.
source "$(dirname "$0")/common.sh"
program=$bin/ragged_model
"$program" write "$work/pairs" 700 3 12 0.6 90
"$program" write "$work/valid" 90 1 12 0.6 90
common=(--task pairs --data "$work/pairs" --batch-tokens 900 --precision fp64 --optimizer adam --lr 0.001 --adam-eps 1e-8
  --dropout 0.2 --block-length 40 --shuffle-blocks 3 --threads 1 --log-interval 1)
# train RUN RANKS OPTION...
train() {
  local run=$1 ranks=$2; shift 2
  run_ranks "$ranks" "$program" train "${common[@]}" --save-dir "$work/$run" "$@"
  expect_ok "$run"
}
same() { "$bin/compare_models" "$work/$1/model.safetensors" "$work/$2/model.safetensors" "$3" || fail "$1 differs from $2"; }

train one 1 --max-update 10 --max-tokens 2000 --balance declared
grep -q 'tokens/s' "$work/log" || { cat "$work/log"; fail 'no rate in tokens'; }
padding=$(json "$work/one/summary.json" padding)
python3 -c 'import sys; assert 0 < float(sys.argv[1]) < 1, sys.argv' "$padding" || fail "padding $padding"

# The cut follows measured speeds, and micro-batches are capped in samples too; the result is the same. The speeds are kept
# for later runs on these lengths, with the cost that a row's length has.
measured() { grep -q 'measuring the speed of 2 ranks' "$work/log"; }
keep=(--max-tokens 400 --max-sentences 9 --cache-dir "$work/cache")
train auto 2 --max-update 10 "${keep[@]}"
same one auto 1e-12
measured || { cat "$work/log"; fail 'nothing was measured'; }
grep -q '"square"' "$work"/cache/step-cost-*.json || fail 'no speed was kept'
train replayed 2 --max-update 10 --max-tokens 400 --max-sentences 9 --balance "file:$work/auto/allocations.json"
same auto replayed 0

train second 2 --max-update 2 "${keep[@]}"
! grep -q 'measuring' "$work/log" || { cat "$work/log"; fail 'kept speeds were measured again'; }
python3 - "$work"/{auto,second}/allocations.json <<'PY' || fail 'kept speeds give another cut'
import json, sys
first, second = (json.load(open(path)) for path in sys.argv[1:])
assert first["allocations"][0] == second["allocations"][0] and first["square"] == second["square"], (first, second)
PY
train others 2 --max-update 2 "${keep[@]}" --data "$work/valid"
measured || { cat "$work/log"; fail 'speeds of other lengths were taken'; }

# Stopped in the middle of a window, continued on other ranks.
train cut 2 --max-update 4 --max-tokens 500 --balance declared
train cut 5 --max-update 10 --max-tokens 0=300,1=0,2=700,3=100,4=200 --balance declared
same one cut 1e-12

# Whole epochs: the update count says how many an epoch has; batches of samples; validation.
train epochs 2 --max-epoch 2 --max-tokens 500 --valid-data "$work/valid"
updates=$(json "$work/epochs/summary.json" updates)
(($(json "$work/epochs/summary.json" samples) == 1400)) || fail 'not every sample came twice'
(($(json "$work/epochs/summary.json" epochs) == 2 && updates % 2 == 0)) || fail "$updates updates in 2 epochs"
train sized 2 --batch-tokens 0 --batch-size 64 --max-epoch 1 --max-tokens 500
(($(json "$work/sized/summary.json" updates) == 11)) || fail '700 samples are 11 batches of 64'
train whole 1 --batch-tokens 0 --batch-size 64 --max-epoch 1 --max-tokens 5000
same whole sized 1e-12

rc=0
"$program" evaluate "$work/epochs" --checkpoint last --data "$work/valid" --json >"$work/evaluation.json" 2>"$work/log" || rc=$?
expect_ok evaluate
python3 - "$work/evaluation.json" "$work/epochs/summary.json" <<'PY' || fail 'evaluate and the last validation differ'
import json, sys
text, summary = open(sys.argv[1]).read(), json.load(open(sys.argv[2]))
assert abs(json.loads(text)["nll"] - summary["valid"]["nll"]) < 1e-9, (text, summary["valid"])
PY

# Long samples, and options that contradict each other.
run_ranks 2 "$program" train "${common[@]}" --max-update 2 --max-tokens 0=50,1=400
expect_error 65 'samples are longer than 50'
train skipped 2 --max-update 2 --max-tokens 0=50,1=400 --skip-too-long
grep -q 'are left out' "$work/log" || { cat "$work/log"; fail 'nothing is said of long samples'; }
"$program" evaluate "$work/skipped" >/dev/null 2>"$work/log" || { cat "$work/log"; fail 'a run without validation is not evaluated'; }
grep -q 'has no validation data, so its training data' "$work/log" || { cat "$work/log"; fail 'nothing is said of training data'; }
train roomy 1 --max-update 2 --max-tokens 6000 --skip-too-long --valid-data "$work/valid" # more than the default of others
"$program" evaluate "$work/roomy" >/dev/null 2>"$work/log" || { cat "$work/log"; fail 'a run of long micro-batches is not evaluated'; }
run_ranks 1 "$program" train "${common[@]}" --max-update 2 --batch-size 8
expect_error 78 '--batch-size and --batch-tokens were both given'
run_ranks 1 "$program" train "${common[@]}" --max-update 2 --batch-tokens 20
expect_error 78 'batches of 20 tokens are too small'
run_ranks 1 "$program" train "${common[@]}" --max-update 2 --max-tokens 300 --max-length 400
expect_error 78 '--max-length 400 is above --max-tokens'
