#!/usr/bin/env bash
# hetseq translate: the same bytes on any ranks and with any batches, lines in the order of the input, options, errors.
source "$(dirname "$0")/common.sh"
program=$bin/hetseq
"$program" prepare numbers --output "$work/numbers" --samples 3000 --seed 5 >"$work/log" 2>&1 || { cat "$work/log"; fail 'prepare numbers'; }
cat >"$work/small.json" <<'JSON'
{"model_type": "transformer", "d_model": 24, "ffn_dim": 40, "attention_heads": 3, "encoder_layers": 2, "decoder_layers": 2,
 "max_positions": 48}
JSON
run=$work/run
run_ranks 1 "$program" train --task translation --model-config "$work/small.json" --data "$work/numbers/train*.h5" --threads 1 \
  --lr 0.004 --lr-scheduler fixed --max-tokens 1500 --max-update 60 --save-interval-updates 20 --keep-last 0 --save-dir "$run" \
  --valid-data "$work/numbers/valid*.h5"
expect_ok train
head -n 80 "$work/numbers/test.en" >"$work/in"

# translate RANKS OUTPUT OPTION... <INPUT: what it says in $work/log, its exit code in $rc.
translate() {
  local ranks=$1 output=$2; shift 2
  rc=0
  timeout 300 mpirun -np "$ranks" "$program" translate "$run" --threads 1 "$@" >"$work/$output" 2>"$work/log" || rc=$?
}
same() { cmp "$work/$1" "$work/$2" || fail "$1 differs from $2"; }

"$program" translate "$run" --threads 1 <"$work/in" >"$work/one" 2>"$work/log" || { cat "$work/log"; fail 'without mpirun'; }
[[ $(wc -l <"$work/one") == 80 ]] || fail 'not as many lines as the input'
translate 3 three <"$work/in"; expect_ok 'three ranks'
same one three
translate 2 batches --batch-sentences 7 --batch-source-tokens 60 <"$work/in"; expect_ok 'small batches'
same one batches
translate 1 exact --precision fp64 <"$work/in"; expect_ok fp64
translate 2 exact_batches --precision fp64 --batch-sentences 3 <"$work/in"; expect_ok 'fp64, small batches'
same exact exact_batches

# Empty lines stay; a last line without an end is a line; nothing gives nothing.
translate 2 gaps < <(printf 'one\n\n   \ntwo'); expect_ok 'empty lines'
[[ $(wc -l <"$work/gaps") == 4 && $(sed -n 2,3p "$work/gaps") == '' ]] || fail 'empty lines did not stay'
translate 1 nothing </dev/null; expect_ok 'no input'
[[ ! -s $work/nothing ]] || fail 'output without input'

# Several translations with scores: the first is the one of before.
translate 1 several --nbest 3 --print-scores <"$work/in"; expect_ok nbest
[[ $(wc -l <"$work/several") == 240 ]] || fail 'not three lines for each'
awk 'NR % 3 == 1' "$work/several" | cut -f 2 | cmp - "$work/one" || fail 'the first of three is another than the only one'
awk -F '\t' 'NR % 3 != 1 && $1 > last {exit 1} {last = $1}' "$work/several" || fail 'scores do not fall'
translate 1 short --max-len-b 1 --min-len 0 --checkpoint best <"$work/in"; expect_ok 'one token, by the best model'

# Checkpoints.
translate 1 last --checkpoint last <"$work/in"; expect_ok last
same one last
"$program" checkpoint average "$run" --last 2 --output "$work/mean.safetensors" >"$work/log" 2>&1 || fail average
translate 1 mean_file --checkpoint "$work/mean.safetensors" <"$work/in"; expect_ok 'a file'
translate 1 mean --checkpoint average:2 <"$work/in"; expect_ok average:2
same mean_file mean

# A line in, a line out, while the input stays open.
coproc slow { timeout 60 "$program" translate "$run" --threads 1 2>/dev/null; }
slow_pid=${slow_PID:?}
exec {to}>&"${slow[1]}" {from}<&"${slow[0]}"
eval "exec ${slow[1]}>&-"
for number in 1 2 3; do
  sed -n "${number}p" "$work/in" >&"$to"
  read -r -t 30 -u "$from" answer || fail 'no answer while the input is open'
  [[ $answer == "$(sed -n "${number}p" "$work/one")" ]] || fail 'an answer of its own'
done
exec {to}>&-
wait "$slow_pid" || fail 'the end of slow input'

# Too long lines are cut, with a warning; bad lines are errors after what stands before them.
translate 2 long < <(head -n 3 "$work/in"; printf 'nine %.0s' {1..100}; echo); expect_ok 'a long line'
[[ $(wc -l <"$work/long") == 4 ]] || fail 'a long line lost'
grep -q "lines with more than the model's 47 tokens: 1 (the first is line 4)" "$work/log" || { cat "$work/log"; fail 'no warning of a long line'; }
translate 2 bad < <(printf 'one\ntwo\nthr\xffee\nfour\n')
expect_error 65 'standard input, line 3 is not UTF-8'
[[ $(wc -l <"$work/bad") == 2 ]] || fail 'lines before a bad one are lost'

# Endless lines end with the reader of the output, on all ranks.
answers_one() {
  local ranks=$1 command
  # shellcheck disable=SC2016
  command='if ((${OMPI_COMM_WORLD_RANK:-0} == 0)); then "$@" | head -n 1; exit "${PIPESTATUS[0]}"; fi; exec "$@"'
  if ((ranks == 0)); then set -- bash -c "$command" -; else set -- mpirun -np "$ranks" bash -c "$command" -; fi
  rc=0
  timeout 120 "$@" "$program" translate "$run" --threads 1 --batch-sentences 2 < <(yes one) >"$work/first" 2>"$work/log" || rc=$?
  [[ $rc == 141 && $(cat "$work/first") == "$(head -n 1 "$work/gaps")" ]] || { cat "$work/log"; fail "ended with $rc, on $ranks ranks"; }
}
answers_one 0
answers_one 2

translate 1 wide --beam 2 --nbest 3 <"$work/in"
expect_error 78 '--nbest is 3'
translate 1 many --checkpoint average:9 <"$work/in"
expect_error 66 'ask for fewer'
run_ranks 1 "$program" translate "$work/numbers"
expect_error 66 config.json
mkdir "$work/classifier"
echo '{"model_type": "bert"}' >"$work/classifier/config.json"
run_ranks 1 "$program" translate "$work/classifier"
expect_error 78 "model_type is 'bert', which does not translate"
echo '{"model_type": "tra' >"$work/classifier/config.json"
run_ranks 1 "$program" translate "$work/classifier"
expect_error 65 'holds no JSON object'
