# Sourced by the scripts beside it, after end_to_end/common.sh: virtual hosts that go when the script ends.
# shellcheck shell=bash
source "$(dirname "${BASH_SOURCE[0]}")/../end_to_end/common.sh"
vcluster=$(dirname "${BASH_SOURCE[0]}")/vcluster

"$vcluster" possible || skip 'virtual hosts need root, iproute2, network namespaces and control groups'

# cluster_up HOST[:slots=N]...
cluster_up() {
  "$vcluster" down # of a test that was killed
  trap '"$vcluster" down; rm -rf "$work"' EXIT
  "$vcluster" up "$@"
}

# run_cluster N COMMAND...: as run_ranks, over the hosts of the cluster. Only what is named here reaches other hosts.
run_cluster() {
  local ranks=$1; shift
  rc=0
  timeout 250 "$vcluster" run -np "$ranks" -x OMP_NUM_THREADS=1 --mca mpi_yield_when_idle 1 "$@" >"$work/log" 2>&1 || rc=$?
}
