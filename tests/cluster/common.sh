# Sourced by the scripts beside it, after end_to_end/common.sh: virtual hosts that go when the script ends.
# shellcheck shell=bash
source "$(dirname "${BASH_SOURCE[0]}")/../end_to_end/common.sh"
vcluster=$(dirname "${BASH_SOURCE[0]}")/vcluster

((EUID == 0)) || skip 'virtual hosts need root'
command -v ip >/dev/null || skip 'virtual hosts need iproute2'
unshare --net true 2>/dev/null || skip 'virtual hosts need network namespaces'

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
