#!/usr/bin/env bash
# usage: tests/stand_in/training_test.sh BINARY_DIR
# The whole program over the stand-ins of CUDA and NCCL: what it trains on GPUs equals what it trains on a CPU, restarts
# included, and jobs/gpu-check.sh, which checks that on real ones, can find a fault.
set -euo pipefail
bin=${1:?usage: training_test.sh BINARY_DIR}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { cat "$work/log"; echo "FAILED: $*"; exit 1; }

# The script reports in build/gpu-check of the tree it stands in.
mkdir "$work/tree" "$work/bin"
cp -r jobs "$work/tree/jobs"
printf '#!/bin/bash\n%s\n' 'echo "GPU 0: stand-in (UUID: GPU-0)"; echo "GPU 1: stand-in (UUID: GPU-1)"' >"$work/bin/nvidia-smi"
chmod +x "$work/bin/nvidia-smi"
# check EXIT_CODE [VARIABLE=VALUE...]
check() {
  local expected=$1 rc=0; shift
  env PATH="$work/bin:$PATH" HETSEQ="$(realpath "$bin")/hetseq_stand_in" STAND_IN_GPUS=2 "$@" \
    bash "$work/tree/jobs/gpu-check.sh" >"$work/log" 2>&1 || rc=$?
  ((rc == expected)) || { tail -n 40 "$work"/tree/build/gpu-check/report/*.log; fail "exit code $rc, expected $expected"; }
}
says() { grep -qF -- "$1" "$work/log" || fail "no word of '$1'"; }

check 0
says 'all is well'
tar -tzf "$work/tree/build/gpu-check/report.tar.gz" | grep -q 'report/bench-mnist.json' || fail 'the report lacks a benchmark'
if grep -rh "stand-in:" "$work/tree/build/gpu-check/report"; then fail 'the program misused CUDA'; fi

check 1 STAND_IN_NCCL_INIT_FAILS_ON=1
says 'FAILED: equivalence in fp64'
grep -q 'ncclCommInitRankConfig failed .*rank 1' "$work/tree/build/gpu-check/report/equivalence-in-fp64.log" || fail 'the reason is missing'
check 1 STAND_IN_CAPABILITY=6.0
grep -q 'cannot run this hetseq (its compute capability is 6.0' "$work/tree/build/gpu-check/report/equivalence-in-fp64.log" ||
  fail 'an old GPU is not recognised'
echo 'training over the stand-ins equals the CPU'"'"'s; faults are reported'
