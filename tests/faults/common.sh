# Sourced by the scripts beside it: jobs of hetseq_faulty with something that happens to one rank, and how long they
# take to end then.
# shellcheck shell=bash
source "$(dirname "${BASH_SOURCE[0]}")/../end_to_end/common.sh"

most_seconds=${HETSEQ_FAULT_SECONDS:-10} # from the fault to mpirun's end
make_some_images 600 16 # they are validated often
# shellcheck disable=SC2034 # for the scripts
train=("$bin/hetseq_faulty" train --task mnist --data "$work/data/train*.h5" --valid-data "$work/data/t10k*.h5"
  --max-sentences 8 --max-update "${updates:-12}" --valid-interval 3 --log-interval 1 --bucket-mb 0.001 --threads 1
  --save-minutes 0 --cache-dir "$work/cache")

# run_faulty N FAULT COMMAND...: as run_ranks, with HETSEQ_FAULT=FAULT; in $took the seconds to the end, from the first
# fault at the point that FAULT names last.
run_faulty() {
  local ranks=$1 fault=$2; shift 2
  rc=0
  timeout 100 mpirun -np "$ranks" -x HETSEQ_FAULT="$fault" "$@" >"$work/log" 2>&1 || rc=$?
  local end at point
  end=$(date +%s.%N)
  IFS=: read -r _ point _ <<<"${fault##*,}"
  ((rc != 124)) || { cat "$work/log"; fail "$fault: still running after 100 s"; }
  at=$(sed -n "s/^.*fault point $point .* at \\([0-9.]*\\)\$/\\1/p" "$work/log" | head -n 1)
  [[ $at ]] || { cat "$work/log"; fail "$fault: did not happen"; }
  took=$(awk -v a="$at" -v e="$end" 'BEGIN {printf "%.1f", e - a}')
  awk -v t="$took" -v m="$most_seconds" 'BEGIN {exit !(t <= m)}' ||
    { cat "$work/log"; fail "$fault: took $took s to end"; }
}
expect_count() {
  (($(grep -cE -- "$2" "$work/log") == $1)) || { cat "$work/log"; fail "expected $1 time(s): $2"; }
}
# expect_block CODE TEXT [LINE]: the exit code, one error that holds TEXT (a regular expression), and the line under it.
expect_block() {
  ((rc == $1)) || { cat "$work/log"; fail "exit code $rc, expected $1: $2"; }
  expect_count 1 " error .*$2"
  expect_count 1 "^  hetseq [0-9.]+ \(.*\), ${3:-.*}"
}
# table CASE: a row of docs/faults.md.
table() { printf '%-28s %3d  %5s s  %s\n' "$1" "$rc" "$took" "$(grep -m1 -E ' error |^error: |signal' "$work/log")"; }
