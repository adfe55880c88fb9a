#!/usr/bin/env bash
# bin/hetseq alone answers what needs neither tensors nor MPI, and becomes the whole program for all else.
source "$(dirname "$0")/common.sh"
whole=$bin/../libexec/hetseq/hetseq-program

# What it says is what the whole program says.
for words in --version --help 'new --help' 'report --help' 'bleu --help' 'tokenize --help' 'checkpoint list --help' \
  new 'new task.txt' 'new /nowhere/task.py' 'help bleu' report 'report /nowhere' 'bleu /nowhere' 'bleu --width x r' tokenize 'checkpoint list' \
  'checkpoint verify /nowhere' 'checkpoint none' 'train --help' none ''; do
  # shellcheck disable=SC2086
  { rc=0; "$bin/hetseq" $words </dev/null || rc=$?; echo "code $rc"; } >"$work/small" 2>&1
  # shellcheck disable=SC2086
  { rc=0; "$whole" $words </dev/null || rc=$?; echo "code $rc"; } >"$work/whole" 2>&1
  diff <(sed 's/^[0-9:]* //' "$work/small") <(sed 's/^[0-9:]* //' "$work/whole") || fail "hetseq $words"
done

# A reader that has left is no error of what was done for it.
for words in --version --help 'bleu --help'; do
  codes=()
  # shellcheck disable=SC2086
  (sleep 0.2; "$bin/hetseq" $words) | : || codes=("${PIPESTATUS[@]}")
  [[ ${codes[0]-0} == 0 ]] || fail "hetseq $words without a reader: ${codes[0]}"
done

if ldd "$bin/hetseq" | grep -E 'libtorch|libmpi|libhdf5'; then
  fail 'the small program loads what it should not'
fi

# Alone it says what is missing; beside the whole program it finds it.
cp "$bin/hetseq" "$work/hetseq"
"$work/hetseq" --version >"$work/out"
grep -q '^hetseq [0-9]' "$work/out" || fail 'no version'
rc=0; "$work/hetseq" info >"$work/log" 2>&1 || rc=$?
expect_error 74 'install bin/ and libexec/ of hetseq together'
ln -s "$(realpath "$whole")" "$work/hetseq-program"
"$work/hetseq" info >"$work/out"
grep -q '^LibTorch' "$work/out" || fail 'the whole program beside it is not found'
