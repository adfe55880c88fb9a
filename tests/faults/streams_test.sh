#!/usr/bin/env bash
# Standard output and error that are closed, full or read no longer: the program ends in order, and what could not be
# printed is an error where it was asked for.
source "$(dirname "$0")/../end_to_end/common.sh"
make_images
train=("$bin/hetseq" train --task mnist --data "$work/data/train*.h5" --max-sentences 8 --max-update 4 --log-interval 1
  --threads 1 --cache-dir none)

# ends CODE NAME COMMAND...: COMMAND in a shell of its own ends with CODE.
ends() {
  local expected=$1 name=$2 rc=0
  shift 2
  timeout 60 bash -c "$*" 2>"$work/log" || rc=$?
  ((rc == expected)) || { cat "$work/log"; fail "exit code $rc, expected $expected: $name"; }
}
hetseq=$bin/hetseq
ends 0 'a reader that leaves' "set -o pipefail; $hetseq train --help | head -n 1 >/dev/null"
ends 0 'closed output' "$hetseq info >&-"
ends 74 'a full device' "$hetseq info >/dev/full"
grep -q 'cannot write to standard output (No space left on device)' "$work/log" || { cat "$work/log"; fail 'no word of it'; }

# All three closed: no file of the run may take their numbers, and be printed into.
ends 0 'all closed' "$(printf '%q ' "${train[@]}" --json --save-dir "$work/run") <&- >&- 2>&-"
[[ $(json "$work/run/summary.json" updates) == 4 ]] || fail 'the summary is not a summary'
ends 0 'errors to a full device' "$(printf '%q ' "${train[@]}") 2>/dev/full"
ends 0 'closed, several ranks' "mpirun -np 2 $(printf '%q ' "${train[@]}") --json >&-"
# mpirun may die of the pipe, and then takes its ranks with it.
ends 0 'a reader of several ranks leaves' "mpirun -np 2 $(printf '%q ' "${train[@]}") --json 2>&1 | head -n 1 >/dev/null"
for ((tries = 0; tries < 100; ++tries)); do
  pgrep -f "$work/data" >/dev/null || break
  sleep 0.1
done
((tries < 100)) || fail 'ranks are left that nobody reads'
