#!/usr/bin/env bash
# What a person at a terminal sees and may type: the line of progress, and Ctrl-C.
source "$(dirname "$0")/common.sh"
make_images
train=("$bin/hetseq" train --task mnist --data "$work/data/train*.h5" --max-sentences 8)

# on_terminal [TEXT...] -- COMMAND...: types a Ctrl-C at each TEXT; what it shows is in $work/log, its exit code in $rc.
on_terminal() {
  rc=0
  timeout 250 python3 "$(dirname "$0")/on_terminal.py" "$work/log" "$@" || rc=$?
}
shows_progress() { # UPDATES
  grep -qP "\r\x1b\[K\[[= ]{20}\] +\d+ %  \d+/$1  loss [0-9.e-]+  [0-9.,]+ samples/s  ETA \d+:\d+" "$work/log" ||
    { cat -v "$work/log"; fail "no progress is shown"; }
}

on_terminal -- "${train[@]}" --max-update 30
expect_ok "on a terminal"
shows_progress 30
! tr '\r' '\n' <"$work/log" | sed 's/\x1b\[K//g' | grep -E '^.{101}' || fail "a line is wider than the terminal: it wraps inside words"
tr '\r' '\n' <"$work/log" | grep -q "^\[.*finished" && fail "the line of progress stays before a message"

# mpirun hands the ranks pipes, and is itself on the terminal.
on_terminal -- mpirun -np 2 "${train[@]}" --max-update 30
expect_ok "mpirun on a terminal"
shows_progress 30
run_ranks 2 "${train[@]}" --max-update 30
expect_ok "mpirun into a file"
! grep -q $'\x1b' "$work/log" || { cat -v "$work/log"; fail "progress is drawn into a file"; }

# Ctrl-C saves and stops; it then goes on.
on_terminal ' samples/s  ETA' -- "${train[@]}" --max-update 100000 --save-dir "$work/stopped"
((rc == 75)) || { cat -v "$work/log"; fail "exit code $rc after Ctrl-C"; }
grep -q 'another Ctrl-C ends it at once' "$work/log" || { cat -v "$work/log"; fail "it does not say what another does"; }
compgen -G "$work/stopped/checkpoints/update-*" >/dev/null || fail "Ctrl-C saved nothing"
[[ $(json "$work/stopped/summary.json" status) == stopped ]] || fail status
run_ranks 1 "${train[@]}" --max-update "$(($(json "$work/stopped/summary.json" updates) + 1))" --save-dir "$work/stopped"
expect_ok "continued"
grep -q 'continues from' "$work/log" || { cat "$work/log"; fail "it does not continue"; }

# A second one does not wait, here for a loader that takes longer than the test.
train[0]=$bin/hetseq_faulty
HETSEQ_FAULT=0:loading:3:stall=250 on_terminal ' samples/s  ETA' 'another Ctrl-C' -- "${train[@]}" --max-update 100000
((rc == 130)) || { cat -v "$work/log"; fail "exit code $rc after two Ctrl-C"; }
