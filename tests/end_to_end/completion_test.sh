#!/usr/bin/env bash
# usage: tests/end_to_end/completion_test.sh BINARY_DIR
# What the completions offer: that of bash for a line's words, given as bash gives them (it splits at '=' and ':'), those
# of zsh and fish as these shells say, where they are installed.
# shellcheck source=tests/end_to_end/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
tests=$(realpath "$(dirname "${BASH_SOURCE[0]}")")

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
offers "$(printf '%s\n' --help --version help version "${commands[@]}" | LC_ALL=C sort | paste -sd ' ')" ''
offers 'train' trai

# Every option that --help shows, for a command that takes those of the table, and only its own for another.
mapfile -t options < <("$bin/hetseq" train --help | sed -nE 's/^  (--[a-z-]+) .*/\1/p')
((${#options[@]} > 40)) || fail 'too few options in --help'
offers "$(printf '%s\n' --help "${options[@]}" | LC_ALL=C sort | paste -sd ' ')" train --
offers '--max-epoch --max-length --max-predictions --max-sentences --max-skips --max-tokens --max-update' train inputs/mnist.cfg --max-
offers '--help --output --overwrite --shards' prepare images --
offers '--checkpoint --format --help --json --last --output --overwrite' checkpoint --
offers '--help --json --last' checkpoint list --
offers '--help --last --output --overwrite' checkpoint average runs --
offers '--help --json' info --

# Choices, with a blank or '=' before them, and after a switch a new word.
offers 'auto bf16 fp16 fp32 fp64 tf32' train --precision ''
offers 'fp64' train --precision fp6
offers 'all auto none' train --recompute ''
offers 'none optimizer' train --shard ''
offers 'even memory' train --shard-by ''
offers 'collective independent serial' train --io =
offers 'serial' train --io = s
offers 'bert mnist sequence-classification token-classification translation' check --task ''
offers 'auto must never' train --resume ''
offers 'cosine' train --lr-scheduler c
offers '--overwrite' train --overwrite --overw
offers '' train --lr ''
sets '+o default'
offers 'auto declared equal file:' train --balance ''
offers 'file:' train --balance f
sets '-o nospace'

# Only the options that a command uses.
offers '--device --help --json' bench reduce --
offers '' check --lr
offers '--save-dir' train --save-d
offers '' bench step --save-d

# The words of a command, once.
offers 'data reduce roofline step' bench ''
offers '--data --data-weights --dataset' bench data --data
offers 'bert classification images ner numbers translation vocabulary' prepare ''

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
offers 'runs' plan a.cfg --from ''
offers 'runs' report ''
offers 'a.cfg b.cfg data.h5 runs' bleu ''
offers 'data.h5' bleu a.cfg --input d
offers 'classification language-model' new my_task.py --kind ''
offers '13a char intl none' bleu a.cfg --tokenize ''

# The same after a launcher, from the last hetseq on.
# launched EXPECTED LAUNCHER WORD...: as offers, of a line that begins with a launcher.
launched() {
  local expected=$1 offered; shift
  COMP_WORDS=("$@")
  COMP_CWORD=$(($# - 1))
  [[ $(complete -p "$1") == *' -F _hetseq_launched '* ]] || fail "no completion of $1 is registered"
  _hetseq_launched "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
  offered=$(printf '%s\n' "${COMPREPLY[@]}" | LC_ALL=C sort | paste -sd ' ')
  [[ $offered == "$expected" ]] || fail "'$*' offers '$offered', not '$expected'"
}
launched 'train' mpirun -np 2 hetseq trai
launched 'train' mpiexec -n 2 /opt/hetseq/bin/hetseq trai
launched '--max-epoch --max-length --max-predictions --max-sentences --max-skips --max-tokens --max-update' srun --ntasks 4 hetseq train a.cfg --max-
launched 'serial' mpirun -np 2 hetseq train --io = s
launched 'data.h5' mpirun -np 2 hetseq train --balance file : d
launched 'fp64' mpirun -np 1 hetseq train a.cfg : -np 1 hetseq train --precision fp6
launched '' mpirun -np 1 hetseq train a.cfg : -n
launched '' mpirun -np 2 -x PATH ''
launched '' mpirun --wdir "$work/files/runs" -n
# Whatever completed a launcher before goes on doing so up to hetseq's name.
_of_srun() { COMPREPLY=(--earlier); }
complete -F _of_srun srun
# shellcheck source=/dev/null
source "$work/hetseq.bash"
# shellcheck source=/dev/null
source "$work/hetseq.bash"
launched '--earlier' srun --ea
launched 'train' srun -n 2 hetseq trai
# zsh and fish, for the same lines.
lines=('hetseq trai' 'hetseq prepare ' 'hetseq prepare images --o' 'hetseq checkpoint list --' 'hetseq train --max-e'
  'hetseq train --precision ' 'hetseq train --precision fp6' 'hetseq train ' 'hetseq evaluate ' 'hetseq train --data d'
  'hetseq bench reduce --dev' 'mpirun -np 2 hetseq train --resume ' 'srun /opt/bin/hetseq trai' 'hetseq bleu --tokenize ')
expected=('train' 'bert classification images ner numbers translation vocabulary' '--output --overwrite' '--help --json --last'
  '--max-epoch' 'fp32 fp64' 'fp64' 'a.cfg b.cfg runs' 'runs' 'data.h5' '--device' 'auto must never' 'train' '13a char intl none')
# compare SHELL OFFERED...: with what is expected of each line.
compare() {
  local shell=$1 i; shift
  (($# == ${#lines[@]})) || fail "$shell answered $# of ${#lines[@]} lines"
  for i in "${!lines[@]}"; do
    [[ $1 == "${expected[i]}" ]] || fail "$shell: '${lines[i]}' offers '$1', not '${expected[i]}'"
    shift
  done
}
"$bin/hetseq" document zsh >"$work/_hetseq"
cmp "$work/_hetseq" "$bin/../documents/_hetseq" || fail 'the build wrote another completion for zsh'
"$bin/hetseq" document fish >"$work/hetseq.fish"
cmp "$work/hetseq.fish" "$bin/../documents/hetseq.fish" || fail 'the build wrote another completion for fish'
if command -v zsh >/dev/null; then
  zsh -n "$work/_hetseq" || fail 'zsh objects to the completion'
  mapfile -t offered < <(python3 "$tests/zsh_offers.py" "$work/_hetseq" "${lines[@]}")
  compare zsh "${offered[@]}"
else
  echo 'no zsh here: its completion was not tried'
fi
if command -v fish >/dev/null; then
  offered=()
  for line in "${lines[@]}"; do
    offered+=("$(fish -N -c "source $work/hetseq.fish; complete -C '$line'" | cut -f1 | sed 's!/$!!' | LC_ALL=C sort -u | paste -sd ' ')")
  done
  compare fish "${offered[@]}"
else
  echo 'no fish here: its completion was not tried'
fi
echo "the completions offer what they should"
