#!/usr/bin/env bash
# usage: tests/end_to_end/completion_test.sh BINARY_DIR
# What the bash completion offers for a line's words, given as bash gives them (it splits at '=' and ':').
# shellcheck source=tests/end_to_end/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

"$bin/hetseq" document bash >"$work/hetseq.bash"
cmp "$work/hetseq.bash" "$bin/../documents/hetseq.bash" || fail 'the build wrote another completion'
if command -v shellcheck >/dev/null; then
  shellcheck "$work/hetseq.bash" || fail 'shellcheck objects to the completion'
fi
settings=
compopt() { settings+=" $*"; }  # bash's own works only while it completes
# shellcheck source=/dev/null
source "$work/hetseq.bash"
complete -p hetseq >/dev/null || fail 'no completion is registered'

# offers EXPECTED WORD...: what is offered for the last word, sorted, with blanks between.
offers() {
  local expected=$1 offered; shift
  COMP_WORDS=(hetseq "$@")
  COMP_CWORD=$#
  settings=
  _hetseq hetseq "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
  offered=$(printf '%s\n' "${COMPREPLY[@]}" | LC_ALL=C sort | paste -sd ' ')
  [[ $offered == "$expected" ]] || fail "'hetseq $*' offers '$offered', not '$expected'"
}
sets() { [[ $settings == *"$1"* ]] || fail "compopt $1 is not called, only '$settings'"; }

mapfile -t commands < <("$bin/hetseq" --help | sed -nE '/^Commands:/,$ s/^  ([a-z]+)  .*/\1/p')
offers "$(printf '%s\n' --help --version "${commands[@]}" | LC_ALL=C sort | paste -sd ' ')" ''
offers 'train' tr

# Every option that --help shows, for a command that takes those of the table, and only its own for another.
mapfile -t options < <("$bin/hetseq" train --help | sed -nE 's/^  (--[a-z-]+) .*/\1/p')
((${#options[@]} > 40)) || fail 'too few options in --help'
offers "$(printf '%s\n' --help "${options[@]}" | LC_ALL=C sort | paste -sd ' ')" train --
offers '--max-epoch --max-sentences --max-skips --max-update' train inputs/mnist.cfg --max-
offers '--help --output --shards' prepare images --
offers '--help --json' info --

# Choices, with a blank or '=' before them, and after a switch a new word.
offers 'fp32 fp64' train --precision ''
offers 'fp64' train --precision fp6
offers 'collective independent serial' train --io =
offers 'serial' train --io = s
offers 'bert mnist' check --task ''
offers 'auto must never' train --resume ''
offers 'cosine' train --lr-scheduler c
offers '--overwrite' train --overwrite --overw
offers '' train --lr ''
sets '+o default'
offers 'auto declared equal file:' train --balance ''
offers 'file:' train --balance f
sets '-o nospace'

# The words of a command, once.
offers 'data reduce step' bench ''
offers '--data --dataset' bench data --data
offers 'images' prepare ''

# Files: configurations, folders or any, by what the place takes.
mkdir "$work/files" "$work/files/runs"
touch "$work"/files/{a.cfg,b.cfg,data.h5}
cd "$work/files"
offers 'a.cfg b.cfg runs' train ''
sets '-o filenames'
offers 'a.cfg' train a
offers 'a.cfg b.cfg data.h5 runs' train --data ''
offers 'data.h5' train --data = d
offers 'data.h5' train --balance file : d
offers 'runs' train --save-dir ''
offers 'runs' evaluate ''
offers 'a.cfg b.cfg data.h5 runs' prepare images ''
offers 'runs' prepare images data.h5 --output ''
echo "the completion offers what it should"
