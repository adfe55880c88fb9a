#!/usr/bin/env bash
# hetseq prepare vocabulary: what it writes on one rank and on two, and what it refuses.
source "$(dirname "$0")/common.sh"

for ((i = 0; i < 200; i++)); do
  printf 'low lower lowest, new newer newest %s\nThe WIDE\trivér flows\r\n' "$((i % 7))"
done >"$work/a.txt"
gzip -c "$work/a.txt" >"$work/b.txt.gz"

"$bin/hetseq" prepare vocabulary --input "$work/a.txt,$work/b.txt.gz" --vocab-size 59 --output "$work/vocab.txt" >"$work/out" ||
  fail 'prepare vocabulary'
[[ $(wc -l <"$work/vocab.txt") == 59 && $(head -n 2 "$work/vocab.txt" | tail -n 1) == '[UNK]' ]] ||
  { cat "$work/vocab.txt"; fail 'the pieces'; }
grep -q 'vocab.txt: 59 pieces from .* words, .* different ones; .* pieces a word' "$work/out" || { cat "$work/out"; fail 'the summary'; }
run_ranks 2 "$bin/hetseq" prepare vocabulary --input "$work/b.txt.gz,$work/a.txt" --vocab-size 59 --output "$work/again.txt"
expect_ok 'among ranks'
cmp "$work/vocab.txt" "$work/again.txt" || fail 'two ranks write another vocabulary'

# What it wrote is what tokenize reads, and it knows all of the text.
"$bin/hetseq" tokenize --vocab "$work/vocab.txt" <"$work/a.txt" >"$work/ids"
[[ $(wc -l <"$work/ids") == 400 ]] || fail 'a line of ids for each line'
! grep -qwF 1 "$work/ids" || fail 'a word of the text is unknown'
[[ $("$bin/hetseq" tokenize --vocab "$work/vocab.txt" --tokens <<<'LOW newest') == 'low newest' ]] || fail 'frequent words are pieces'

"$bin/hetseq" prepare vocabulary --input "$work/a.txt" --vocab-size 59 --cased --output "$work/cased.txt" >/dev/null
if ! grep -qx 'W' "$work/cased.txt" || ! grep -qx '##é' "$work/cased.txt"; then fail 'case and accents are kept'; fi
! grep -qx '##é' "$work/vocab.txt" || fail 'accents go without --cased'

rc=0; "$bin/hetseq" prepare vocabulary --input "$work/a.txt" 2>"$work/log" || rc=$?
expect_error 78 '--output'
rc=0; "$bin/hetseq" prepare vocabulary --input "$work/none" --output "$work/v" 2>"$work/log" || rc=$?
expect_error 66 'none'
rc=0; "$bin/hetseq" prepare vocabulary --input "$work/a.txt" --vocab-size 9 --output "$work/v" 2>"$work/log" || rc=$?
expect_error 65 'a vocabulary of 9 pieces is too small'
: >"$work/empty.txt"
rc=0; "$bin/hetseq" prepare vocabulary --input "$work/empty.txt" --output "$work/v" 2>"$work/log" || rc=$?
expect_error 65 'the text has no words'
[[ ! -e $work/v ]] || fail 'a failure leaves a file'
echo "vocabularies are trained"
