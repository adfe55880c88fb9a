#!/usr/bin/env bash
# Text to shards: the same bytes on one and three ranks, errors before anything is written, and Multi30k where it is.
source "$(dirname "$0")/common.sh"

# same_files FOLDER FOLDER: they hold the same files.
same_files() { diff -rq "$1" "$2" >"$work/diff" || { cat "$work/diff"; fail "$1 and $2 differ"; }; }

run_ranks 1 "$bin/hetseq" prepare numbers --output "$work/alone" --samples 5000
expect_ok numbers
grep -E '^train +5000 +5000 +0 +0 +0 +0 +1 ' "$work/log" >/dev/null || { cat "$work/log"; fail 'no count of pairs'; }
run_ranks 3 "$bin/hetseq" prepare numbers --output "$work/together" --samples 5000
expect_ok 'numbers on three ranks'
same_files "$work/alone" "$work/together"
paste "$work/alone/train.en" "$work/alone/train.de" >"$work/pairs"
! cut -f 1 "$work/pairs" | grep -Fxf "$work/alone/test.en" || fail 'a number of the test is trained on'
(($(sort -u "$work/alone/test.en" | wc -l) >= 1000)) || fail 'too few numbers to test'
"$bin/hetseq" check --task translation --data "$work/alone/train*.h5" >"$work/log" || { cat "$work/log"; fail check; }

# Several files, gzip or not, by their names' order on the command line.
head -n 2000 "$work/alone/train.en" >"$work/a.en"
tail -n +2001 "$work/alone/train.en" | gzip >"$work/b.en.gz"
translation=("$bin/hetseq" prepare translation --source-text "$work/a.en,$work/b.en.gz" --vocab-size 150 --joined --shards 4)
head -n 2000 "$work/alone/train.de" | gzip >"$work/a.de.gz"
tail -n +2001 "$work/alone/train.de" >"$work/b.de"
for ranks in 1 3; do
  run_ranks $ranks "${translation[@]}" --target-text "$work/a.de.gz,$work/b.de" --output "$work/made-$ranks"
  expect_ok "translation on $ranks ranks"
done
same_files "$work/made-1" "$work/made-3"
[[ -e $work/made-1/train-00003-of-00004.h5 ]] || fail 'no fourth shard'

run_ranks 2 "${translation[@]}" --target-text "$work/a.de.gz,$work/a.en" --output "$work/bad"
expect_error 65 "b.en.gz and $work/a.en do not belong together (3000 lines, 2000 lines)"
printf 'caf\351\n' | cat "$work/a.en" - >"$work/latin"
run_ranks 2 "${translation[@]}" --target-text "$work/a.de.gz,$work/latin" --output "$work/bad"
expect_error 65 "$work/latin, line 2001 is not UTF-8"
run_ranks 1 "${translation[@]}" --target-text "$work/a.de.gz,$work/none" --output "$work/bad"
expect_error 66 "no such file: $work/none"
run_ranks 1 "${translation[@]}" --target-text "$work/a.de.gz,$work/b.de" --output "$work/bad" --model-type word
expect_error 78 "--model-type: 'word' is not one of bpe, unigram, dictionary"
[[ ! -e $work/bad ]] || fail 'an error left something behind'

multi30k=$HETSEQ_TEST_DATA/multi30k
[[ -d $multi30k ]] || { echo 'Multi30k is not here'; exit 0; }
run_ranks 2 "$bin/hetseq" prepare translation --source-text "$multi30k/train.lc.norm.tok.en.gz" \
  --target-text "$multi30k/train.lc.norm.tok.de.gz" --valid-source-text "$multi30k/val.lc.norm.tok.en.gz" \
  --valid-target-text "$multi30k/val.lc.norm.tok.de.gz" --vocab-size 10000 --joined --shards 2 --output "$work/multi30k"
expect_ok Multi30k
grep -E '^train +29000 +29000 ' "$work/log" >/dev/null || { cat "$work/log"; fail 'pairs of Multi30k'; }
grep -E '^valid +1014 +1014 ' "$work/log" >/dev/null || { cat "$work/log"; fail 'pairs to validate'; }
grep -E 's: .* sentences/s$' "$work/log"
