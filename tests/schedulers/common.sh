# Sourced by the scripts beside it: the repository's job scripts, a folder of the test's own, and what a run must look like.
# shellcheck shell=bash
set -euo pipefail
here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
# shellcheck disable=SC2034 # used by those that source this
jobs=$(realpath "$here/../../jobs")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$jobs/job.sh" "$work"

fail() { echo "FAILED: $*" >&2; exit 1; }
skip() { echo "SKIPPED: $*"; exit 77; }

# settings FILE MAX_UPDATE [LINE...]: what a job script takes from HETSEQ_JOB, for the stand-in.
settings() {
  local file=$1 last=$2; shift 2
  printf '%s\n' 'modules=()' 'run=run' "command=('$here/trainer.sh' --save-dir run --max-update $last)" "$@" >"$file"
}

# expect_log FILE COUNT TEXT: so many lines have the text.
expect_log() {
  local found
  found=$(grep -cF -- "$3" "$1") || true
  ((found == $2)) || { cat "$1"; fail "$found lines, expected $2, with: $3"; }
}

# expect_updates RUN LAST: each update up to LAST was computed once.
expect_updates() { diff <(seq "$2") "$1/updates" || fail "the updates of $1 are not 1 to $2, each once"; }
