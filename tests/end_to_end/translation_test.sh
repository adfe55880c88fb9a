#!/usr/bin/env bash
# Translation from prepared text to BLEU: one rank's parameters on any ranks (fp64, dropout on), a continued run, the
# vocabulary that data, run and translations share, BLEU in validation as translate and bleu compute it.
source "$(dirname "$0")/common.sh"
program=$bin/hetseq
"$program" prepare numbers --output "$work/numbers" --samples 3000 --seed 5 >"$work/log" 2>&1 || { cat "$work/log"; fail 'prepare numbers'; }
cat >"$work/small.json" <<'JSON'
{"model_type": "transformer", "d_model": 16, "ffn_dim": 32, "attention_heads": 2, "encoder_layers": 1, "decoder_layers": 2,
 "max_positions": 64}
JSON
numbers=(--task translation --model-config "$work/small.json" --data "$work/numbers/train*.h5" --threads 1 --lr 0.001
  --lr-scheduler fixed)
# train RUN RANKS OPTION...
train() {
  local run=$1 ranks=$2; shift 2
  run_ranks "$ranks" "$program" train "${numbers[@]}" --save-dir "$work/$run" "$@"
  expect_ok "$run"
}
same() { "$bin/compare_models" "$work/$1/model.safetensors" "$work/$2/model.safetensors" "$3" || fail "$1 differs from $2"; }

exact=(--precision fp64 --batch-tokens 900 --adam-eps 1e-8 --dropout 0.2 --attention-dropout 0.1 --activation-dropout 0.1
  --warmup-updates 0)
train one 1 "${exact[@]}" --max-update 10 --max-tokens 1500 --balance declared
train cut 2 "${exact[@]}" --max-update 4 --max-tokens 500 --balance declared
train cut 3 "${exact[@]}" --max-update 10 --max-tokens 0=300,1=0,2=700 --balance declared
same one cut 1e-12
# Two stages, of which the second has no limit of sentences: that of the first one counts.
train staged 2 "${exact[@]}" --max-update 10 --max-tokens 500 --max-sentences 0=8,1=0 --virtual-workers 0+1
same one staged 1e-12
# Micro-batches that a plan makes smaller than the longest sample may be: what the run wrote down repeats it all the same.
train planned 2 "${exact[@]}" --max-update 3 --max-tokens 500 --skip-too-long --virtual-workers 0+1
grep -qx 'max-length = 500' "$work/planned/config.cfg" || fail 'the longest sample is not written down'
sed -E 's/^max-tokens = .*/max-tokens = 20/' "$work/planned/config.cfg" >"$work/smaller.cfg"
run_ranks 2 "$program" train "$work/smaller.cfg" --save-dir "$work/repeated"
expect_ok 'what the run wrote down'
same planned repeated 1e-12
run_ranks 1 "$program" evaluate "$work/repeated" --data "$work/numbers/valid*.h5"
expect_ok 'a pipeline of small micro-batches, evaluated'

# A run has its vocabulary, and data of another one are refused.
cmp -s "$work/one/source.vocabulary" "$work/one/target.vocabulary" || fail 'the joint vocabulary is not one'
"$program" prepare numbers --output "$work/others" --samples 4000 --seed 6 >"$work/log" 2>&1 || fail 'prepare numbers anew'
run_ranks 1 "$program" train "${numbers[@]}" --max-update 2 --valid-data "$work/others/valid*.h5"
expect_error 65 "'source_vocabulary' is not the training data's vocabulary"
run_ranks 1 "$program" evaluate "$work/one" --data "$work/others/valid*.h5"
expect_error 65 "'source_vocabulary' is not --init-model's vocabulary"
run_ranks 1 "$program" train --task translation --model-config tiny --max-update 1
expect_error 78 'no data were given'

# BLEU in validation is that of the translations as text.
train scored 2 --max-update 30 --batch-tokens 900 --max-tokens 900 --warmup-updates 0 --lr 0.01 --valid-bleu --valid-beam 2 \
  --best-by bleu:max --valid-data "$work/numbers/valid*.h5"
grep -q 'bleu' "$work/log" || { cat "$work/log"; fail 'no BLEU in the validation'; }
rc=0
mpirun -np 2 "$program" translate "$work/scored" --beam 2 --max-len-a 1.2 --max-len-b 10 --threads 1 \
  <"$work/numbers/valid.en" >"$work/translated" 2>"$work/log" || rc=$?
expect_ok translate
score=$("$program" bleu "$work/numbers/valid.de" --score-only --width 9 <"$work/translated")
python3 - "$score" "$(json "$work/scored/summary.json" valid.best.bleu)" <<'PY' || fail "BLEU in validation is not that of the text, $score"
import sys
text, validation = map(float, sys.argv[1:])
assert text > 0 and abs(text - validation) < 1e-6, (text, validation)
PY
# A run may be continued with the score or without it.
train scored 1 --max-update 31 --batch-tokens 900 --max-tokens 900 --warmup-updates 0 --lr 0.01 --valid-data "$work/numbers/valid*.h5"
