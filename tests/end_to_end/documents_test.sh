#!/usr/bin/env bash
# usage: tests/end_to_end/documents_test.sh BINARY_DIR
# The page of options in docs/ is the program's, the man page is one, and both name every command and option.
# shellcheck source=tests/end_to_end/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

"$bin/hetseq" document options >"$work/options.md"
diff -u docs/options.md "$work/options.md" ||
  fail "docs/options.md is not the program's: $bin/hetseq document options > docs/options.md makes it again"

"$bin/hetseq" document man >"$work/hetseq.1"
cmp "$work/hetseq.1" "$bin/../documents/hetseq.1" || fail 'the build wrote another man page'
checked=
if command -v mandoc >/dev/null; then
  # A date would make each build's page another.
  mandoc -Tlint -Wwarning "$work/hetseq.1" >"$work/log" || true
  ! grep -v 'missing date' "$work/log" || fail 'mandoc warns of the above'
  checked=mandoc
fi
if command -v groff >/dev/null; then
  groff -man -Tutf8 -ww -z "$work/hetseq.1" 2>"$work/log" || { cat "$work/log"; fail groff; }
  [[ ! -s $work/log ]] || { cat "$work/log"; fail 'groff warns of the above'; }
  groff -man -Tascii -P-c "$work/hetseq.1" | sed 's/.\x08//g' >"$work/page"
  for section in NAME SYNOPSIS COMMANDS OPTIONS 'EXIT STATUS'; do
    grep -qx "$section" "$work/page" || fail "the page has no section $section"
  done
  grep -q '^ *--max-sentences N|LIST$' "$work/page" || fail 'an option is not shown as it is written'
  checked+=" groff"
fi

# Lines such as "  --lr X   learning rate" and "  train   train a model on all ranks".
mapfile -t options < <("$bin/hetseq" train --help | sed -nE 's/^  --([a-z-]+) .*/\1/p')
mapfile -t commands < <("$bin/hetseq" --help | sed -nE '/^Commands:/,$ s/^  ([a-z]+)  .*/\1/p')
((${#options[@]} > 40 && ${#commands[@]} > 6)) || fail 'too few options or commands in --help'
for option in "${options[@]}"; do
  grep -qF "\`--$option" "$work/options.md" || fail "the page of options lacks --$option"
  grep -qF "\\fB\\-\\-${option//-/\\-}\\fR" "$work/hetseq.1" || fail "the man page lacks --$option"
done
for command in "${commands[@]}"; do
  grep -qxF "\\fB$command\\fR" "$work/hetseq.1" || fail "the man page lacks the command $command"
done

run_ranks 1 "$bin/hetseq" document mann
expect_error 64 "hetseq document has no 'mann'"
[[ -n $checked ]] || skip 'neither mandoc nor groff is here: the man page was not checked'
echo "${#commands[@]} commands and ${#options[@]} options are documented; checked by ${checked# }"
