# Sourced by the scripts beside it: a real scheduler on virtual hosts that go when the script ends, hetseq's data, and what
# a run that was stopped and continued must have left.
# shellcheck shell=bash
here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
# shellcheck source=tests/cluster/common.sh
source "$here/../cluster/common.sh"
# shellcheck disable=SC2034 # used by those that source this
jobs=$(realpath "$here/../../jobs")
bin=$(realpath "$bin")

# box_up BOX HOST...: `$box exec COMMAND` runs one on the first host from then on.
box_up() {
  box=$here/../cluster/$1; shift
  "$box" possible || skip "$("$box" needs)"
  "$box" down # of a test that was killed
  trap '"$box" down; rm -rf "$work"' EXIT
  "$box" up "$@"
  cd "$work"
  cp "$jobs/job.sh" .
}

# settings [LINE...]: what the job scripts take from HETSEQ_JOB: hetseq on $work/data, on all ranks of a job. The first start
# trains until it is stopped, the next 40 updates more, however fast this machine is; a file `goal` says how many in all.
settings() {
  cat >"$work/settings" <<EOF
modules=()
run=$work/run
goal=\$(cat '$work/goal' 2>/dev/null)
newest=\$(find '$work/run/checkpoints' -name 'update-*[0-9]' 2>/dev/null | sort | tail -n 1)
if [[ -z \$goal && \$newest ]]; then
  goal=\$((10#\${newest##*-} + 40))
  echo "\$goal" >'$work/goal'
fi
command=(mpirun hetseq train --task mnist --data '$work/data/train*.h5' --batch-size 48 --device cpu --threads 1
  --max-update "\${goal:-1000000}" --log-interval 1 --save-dir '$work/run')
EOF
  printf '%s\n' "$@" >>"$work/settings"
}
next_run() { rm -rf "$work"/{run,goal,hetseq*}; }

# kill_rank: kills a rank of the run by SIGKILL.
kill_rank() {
  local rank
  rank=$(pgrep -f -- "hetseq train .*--save-dir $work/run" | grep -vxFf <(pgrep -x 'mpirun|prterun|orted|prted|qrsh|srun') | head -n 1) || rank=''
  [[ $rank ]] || fail 'no rank to kill'
  kill -9 "$rank"
}

# updates: how many the run has logged.
updates() { if [[ -e $work/run/metrics.jsonl ]]; then grep -c '"kind":"train"' "$work/run/metrics.jsonl"; else echo 0; fi; }

# wait_for SECONDS WHAT COMMAND...: until it succeeds.
wait_for() {
  local end=$((SECONDS + $1)) what=$2; shift 2
  until "$@"; do
    ((SECONDS < end)) || { cat "$work"/hetseq*; fail "no $what"; }
    sleep 0.5
  done
}
has_updates() { (($(updates) >= $1)); }

# expect_run: metrics.jsonl has every update up to the goal once, in order.
expect_run() {
  python3 - "$work/run/metrics.jsonl" "$(<"$work/goal")" <<'EOF' || fail 'metrics.jsonl is not contiguous'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
updates = [line["update"] for line in lines if line["kind"] == "train"]
expected = list(range(1, int(sys.argv[2]) + 1))
if updates != expected:
    sys.exit(f"{len(updates)} updates, from {updates[:1]} to {updates[-1:]}, expected {len(expected)}")
EOF
}

# expect_log COUNT TEXT: so many lines of the job's log have the text.
expect_log() {
  local found
  found=$(cat "$work"/hetseq* | grep -cF -- "$2") || true
  ((found == $1)) || { cat "$work"/hetseq*; fail "$found lines, expected $1, with: $2"; }
}
