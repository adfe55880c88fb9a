#!/usr/bin/env bash
# The commands that texts, scripts and configurations show: options exist, and they run.
source "$(dirname "$0")/common.sh"
make_some_images 200 50
make_bert
run_ranks 1 "$bin/hetseq" train --task mnist --data "$work/data/train*.h5" --valid-data "$work/data/t10k*.h5" \
  --max-sentences 16 --max-epoch 1 --save-dir "$work/run"
expect_ok train
"$bin/hetseq" prepare numbers --output "$work/numbers" --samples 2000 >"$work/log" 2>&1 || { cat "$work/log"; fail 'prepare numbers'; }
printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' words >"$work/vocab.txt"
for ((i = 0; i < 40; ++i)); do printf 'some\tO\nwords\tB-Word\n\n'; done >"$work/tagged.tsv"
"$bin/hetseq" prepare ner --input "$work/tagged.tsv" --vocab "$work/vocab.txt" --output "$work/tagged" >"$work/log" 2>&1 ||
  { cat "$work/log"; fail 'prepare ner'; }
for ((i = 0; i < 40; ++i)); do printf 'some\t0\nwords\t1\n'; done >"$work/classified.tsv"
"$bin/hetseq" prepare classification --input "$work/classified.tsv" --vocab "$work/vocab.txt" --output "$work/classified" \
  >"$work/log" 2>&1 || { cat "$work/log"; fail 'prepare classification'; }

for command in '' $("$bin/hetseq" --help | sed -nE 's/^  ([a-z]+)  .*/\1/p'); do
  "$bin/hetseq" ${command:+"$command"} --help >"$work/help-$command.txt"
done
python3 "$(dirname "$0")/shown_commands.py" "$bin/hetseq" "$work" "$work/idx" "$work/data" "$work/run" "$work/numbers" \
  "$work/tagged" "$work/classified" "$work/bert" "$work/small.json" \
  README.md CONTRIBUTING.md docs/*.md modules/*.in jobs/*.sh jobs/apptainer.def inputs/*.cfg "$work"/help-*.txt ||
  fail "a command that is shown"

# They are for anybody's data.
! grep -nE '^(valid-)?data' inputs/*.cfg || fail "a shipped configuration names data"
