#!/usr/bin/env bash
# usage: slurm_heterogeneous_test.sh BINARY_DIR
# slurm.sh on a real Slurm: nodes of two features in one allocation, with one build and with two.
# shellcheck source=tests/schedulers/cluster.sh
source "$(dirname "$0")/cluster.sh"
make_images
box_up slurm-box h1:cpu=1.0,slots=2,gpu='v100*2' h2:cpu=1.0,slots=2,gpu='p100*2' h3:cpu=0.2,slots=2,gpu='p100*2'
export HETSEQ_JOB=$work/settings PATH=$bin:$PATH
resources=(--nodes=2 '--constraint=[v100*1&p100*1]' --ntasks-per-node=2 --gpus-per-node=2 --cpus-per-task=1 --time=5 --signal=B:USR1@60)

# submit: sets rc when the job has ended.
submit() {
  next_run
  echo 20 >"$work/goal"
  rc=0
  "$box" exec timeout 200 sbatch --wait "${resources[@]}" "$jobs/slurm.sh" || rc=$?
  ((rc == 0)) || { cat "$work"/hetseq-*.log; fail "exit code $rc"; }
}
# ranks_on HOST: how many ranks of the run had that host.
ranks_on() {
  python3 -c 'import json, sys; print(sum(r["host"] == sys.argv[2] for r in json.load(open(sys.argv[1]))["ranks"]))' \
    "$work/run/summary.json" "$1"
}

settings "command+=(--balance declared --max-sentences 'h1=16,h2=8')"
submit
expect_run
[[ $(ranks_on h1) == 2 && $(ranks_on h2) == 2 ]] || fail 'not two ranks on each of two nodes'
echo 'one build on both kinds of nodes'

# A build tells which it is, and the devices it sees.
for kind in v100 p100; do
  # shellcheck disable=SC2016
  printf '#!/bin/sh\necho "%s on $(hostname) sees $CUDA_VISIBLE_DEVICES" >>"%s"\nexec hetseq "$@"\n' $kind "$work/builds" >"$work/build-$kind"
  chmod 755 "$work/build-$kind"
done
settings "builds=([v100]=$work/build-v100 [p100]=$work/build-p100)"
submit
expect_run
diff <(printf '%s on %s sees 0,1\n' p100 h2 p100 h2 v100 h1 v100 h1) <(sort "$work/builds") || fail 'builds are not on their nodes'
echo 'a build for each'
