#!/usr/bin/env bash
# --precision by rank on CPUs: fp32 keeps its bits, 16 bits come near it, and checkpoints of one continue in another.
source "$(dirname "$0")/common.sh"
make_some_images 320 50
options=(--task mnist --data "$work/data/train*.h5" --valid-data "$work/data/t10k*.h5" --device cpu --max-sentences 16
  --batch-size 32 --max-update 10 --log-interval 5 --optimizer sgd --lr 0.05 --seed 3)
train() { # RUN RANKS OPTION...
  local run=$1 ranks=$2; shift 2
  run_ranks "$ranks" "$bin/hetseq" train "${options[@]}" --save-dir "$work/$run" "$@"
}
trained() { train "$@"; expect_ok "$1"; }
# near RUN OTHER TOLERANCE
near() { "$bin/compare_models" "$work/$1/model.safetensors" "$work/$2/model.safetensors" "$3" || fail "$1 and $2 differ"; }
unlike() { ! "$bin/compare_models" "$work/$1/model.safetensors" "$work/$2/model.safetensors" 0 || fail "$1 is $2"; }

trained whole 1
trained tf32 1 --precision tf32
near whole tf32 0
trained narrow 1 --precision bf16
grep -q ' bf16 ' "$work/log" || fail 'the start report names no precision'
near whole narrow 0.01
unlike whole narrow
trained list 3 --balance equal --precision '2=fp32,0-1=bf16'
near whole list 0.01
unlike narrow list
grep -qx 'precision = 0=bf16,1=bf16,2=fp32' "$work/list/config.cfg" || fail 'config.cfg holds no list by rank'
[[ $(json "$work/list/summary.json" overflows) == 0 ]] || fail 'summary.json tells of overflows'
! grep -q loss_scale "$work/list/metrics.jsonl" || fail 'metrics.jsonl tells a loss scale that there is none of'

# Gradients on the wire in bf16. One rank sends none; a rank without work sends zeros.
trained alone 1 --reduce-precision bf16
near whole alone 0
trained sent 2 --reduce-precision bf16 --max-update 8
grep -q 'gradients are sent in bf16' "$work/log" || fail 'the start report does not say what is sent'
trained sent 3 --balance declared --max-sentences 0=10,1=0,2=22
near whole sent 0.002
unlike whole sent
train refused 2 --reduce-precision bf16 --precision fp64
expect_error 78 'gradients in fp64 would lose what fp64 is for'

run_ranks 1 "$bin/hetseq" evaluate "$work/sent" --data "$work/data/t10k*.h5" --device cpu --precision fp64 --json
expect_ok 'evaluate in fp64 what was trained with gradients in bf16'

# Nothing but fp64 is fixed with a run.
trained moved 2 --precision bf16 --max-update 5
trained moved 1 --max-update 10
near whole moved 0.01
train moved 1 --precision fp64 --max-update 12
expect_error 78 "its --precision is 'fp32', this run's is 'fp64'"
trained double 1 --precision fp64 --max-update 2
train double 1 --precision bf16 --max-update 12
expect_error 78 "its --precision is 'fp64', this run's is 'bf16'"

# Evaluation and predictions in a precision of their own.
for precision in fp32 bf16; do
  run_ranks 1 "$bin/hetseq" evaluate "$work/whole" --data "$work/data/t10k*.h5" --device cpu --precision $precision --json
  expect_ok "evaluate in $precision"
  json_output "$work/$precision.json"
done
python3 - "$work/fp32.json" "$work/bf16.json" <<'PYTHON' || fail 'evaluations differ'
import json, sys
a, b = (json.load(open(path))["loss"] for path in sys.argv[1:])
print(f"losses {a} and {b}")
sys.exit(a == b or abs(a - b) > 0.01 * a)
PYTHON

run_ranks 1 "$bin/hetseq" evaluate "$work/list" --data "$work/data/t10k*.h5" --device cpu --json
expect_ok 'evaluate a run of three ranks of unlike precision on one'
for precision in fp32 bf16; do
  run_ranks 1 "$bin/hetseq" predict "$work/list" --data "$work/data/t10k*.h5" --device cpu --precision $precision \
    --output "$work/$precision.h5"
  expect_ok "predict in $precision"
done

# What cannot be is said once, by all ranks.
train refused 1 --precision fp16
expect_error 78 '--precision fp16 on'
train refused 2 --precision 0=fp64,1=bf16
expect_error 78 '--precision gives fp64 to some ranks, and bf16 to rank 1'
train refused 1 --fp16
expect_error 78 '--precision fp16 or bf16 computes products in 16 bits'

# Sequences and pairs.
make_bert_and_numbers
cat >"$work/transformer.json" <<'JSON'
{"model_type": "transformer", "d_model": 16, "ffn_dim": 32, "attention_heads": 2, "encoder_layers": 1, "decoder_layers": 2,
 "max_positions": 64}
JSON
for precision in fp32 bf16; do
  options=(--task bert --model-config "$work/small.json" --data "$work/bert" --device cpu --max-sentences 8 --batch-size 16 --max-update 4
    --optimizer adamw --lr 1e-3)
  trained "bert-$precision" 2 --precision $precision
  options=(--task translation --model-config "$work/transformer.json" --data "$work/numbers/train*.h5" --device cpu --max-tokens 400
    --batch-tokens 600 --max-update 4 --dropout 0.1 --lr 1e-3)
  trained "numbers-$precision" 2 --precision $precision
done
for task in bert numbers; do
  near $task-fp32 $task-bf16 0.02
  unlike $task-fp32 $task-bf16
done
head -n 20 "$work/numbers/test.en" >"$work/lines"
translated() { # NAME RANKS PRECISION
  mpirun -np "$2" "$bin/hetseq" translate "$work/numbers-fp32" --device cpu --precision "$3" --print-scores --max-len-b 9 --beam 2 \
    --batch-sentences 2 <"$work/lines" >"$work/translated-$1" 2>"$work/log" || { cat "$work/log"; fail "translating in $1"; }
}
translated single 1 fp32
translated narrow 1 bf16
translated both 2 0=fp32,1=bf16
python3 - "$work"/translated-{single,narrow,both} <<'PY' || fail 'translations in 16 bits are not near those in fp32'
import sys
scores = [[float(line.split("\t")[0]) for line in open(path)] for path in sys.argv[1:]]
for of in scores:
    assert len(of) == 20 and max(abs(a - b) for a, b in zip(of, scores[0])) < 0.05, scores
assert scores[1] != scores[0] and scores[2] != scores[0] and scores[2] != scores[1], scores
PY
run_ranks 1 "$bin/hetseq" translate "$work/numbers-fp32" --device cpu --precision fp16 </dev/null
expect_error 78 'give this rank bf16 or fp32'
echo 'precisions by rank: ok'
