#!/usr/bin/env bash
# usage: tests/build/configure_errors_test.sh LIBTORCH_DIR
# What a site lacks stops the configuration with a message that says what to do.
set -euo pipefail
libtorch=${1:?usage: configure_errors_test.sh LIBTORCH_DIR}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*"; exit 1; }

# refuses TEXT COMMAND...: the command fails, and says TEXT (CMake breaks and indents its lines).
refuses() {
  local text=$1; shift
  if "$@" >"$work/log" 2>&1; then fail "no error: $*"; fi
  tr -s ' \n' ' ' <"$work/log" | grep -qF -- "$text" || { cat "$work/log"; fail "no word of '$text'"; }
}
# configure CMAKE_ARGUMENT...: without a cache; what CMake found out about the compiler stays.
configure() {
  rm -f "$work/build/CMakeCache.txt"
  cmake -S . -B "$work/build" -G Ninja -DHETSEQ_BUILD_TESTS=OFF "$@"
}
# fake_libtorch VERSION C10_SYMBOL: a folder that looks like a LibTorch of that version.
fake_libtorch() {
  rm -rf "$work/torch"
  mkdir -p "$work"/torch/include/torch/{csrc/api/include/torch,headeronly} "$work/torch/lib"
  touch "$work/torch/include/torch/csrc/api/include/torch/torch.h" "$work/torch/lib/libtorch_cpu.so"
  IFS=. read -ra version <<<"$1"
  printf '#define TORCH_VERSION_%s %s\n' MAJOR "${version[0]}" MINOR "${version[1]}" PATCH "${version[2]}" \
    >"$work/torch/include/torch/headeronly/version.h"
  printf '\0%s\0' "$2" >"$work/torch/lib/libc10.so"
}
# check FUNCTION ARGUMENT...: a check of cmake/HetseqChecks.cmake with the values of a machine that has the fault.
check() {
  printf 'include(cmake/HetseqChecks.cmake)\n%s(' "$1" >"$work/check.cmake"; shift
  printf ' "%s"' "$@" >>"$work/check.cmake"
  echo ')' >>"$work/check.cmake"
  cmake -P "$work/check.cmake"
}
new_abi=_ZN3c105ErrorC1ENSt7__cxx1112basic_stringE
real=-DHETSEQ_LIBTORCH_DIR=$libtorch

mkdir "$work/empty"
refuses 'Run jobs/setup.sh' configure -DHETSEQ_LIBTORCH_DIR="$work/empty"
fake_libtorch 2.4.1 $new_abi
refuses 'is too old (2.4.1; hetseq needs 2.7)' configure -DCMAKE_PREFIX_PATH="$work/torch"
fake_libtorch 2.11.0 _ZN3c105ErrorC1ESs
refuses "was built with the other C++ ABI" configure -DHETSEQ_LIBTORCH_DIR="$work/torch"
refuses 'No MPI was found' configure "$real" -DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON
refuses 'No HDF5 was found' configure "$real" -DCMAKE_DISABLE_FIND_PACKAGE_HDF5=ON

printf '#!/bin/sh\nh5pcc "$@" | sed "s/Parallel HDF5: yes/Parallel HDF5: no/"\n' >"$work/h5cc"
chmod +x "$work/h5cc"
refuses 'The HDF5 found is serial' configure "$real" -DHDF5_C_COMPILER_EXECUTABLE="$work/h5cc"
cmake "$work/build" >"$work/log" 2>&1 || { cat "$work/log"; fail 'a serial HDF5 is remembered after it was replaced'; }

refuses 'Install libopenmpi-dev' check hetseq_require_mpi_headers mpicc "$work /no/such/folder"
refuses 'implements MPI 2.2; hetseq needs MPI 3' check hetseq_require_mpi TRUE 2.2
refuses 'without MPI-IO' check hetseq_require_openmpi_components 'mca:osc:sm:version'
refuses 'without shared-memory windows' check hetseq_require_openmpi_components 'mca:io:ompio:version'
check hetseq_require_openmpi_components 'mca:io:romio341:version mca:osc:sm:version' || fail 'a whole Open MPI is refused'
refuses 'built with another MPI' check hetseq_require_same_mpi libmpi.so.12 libmpi.so.40
refuses 'The HDF5 found is 1.10.4' check hetseq_require_parallel_hdf5 TRUE TRUE 1.10.4 libhdf5.so
refuses 'No spdlog 1.5 or later was found' check hetseq_require_library FALSE spdlog 1.5 libspdlog-dev spdlog
refuses 'The compiler is GNU 11.4.0' check hetseq_require_compiler GNU 11.4.0
check hetseq_require_compiler GNU 12.2.0 || fail 'a new compiler is refused'
refuses 'no nvcc was found' check hetseq_require_cuda '' ''
refuses 'nvcc 11.8 is too old' check hetseq_require_cuda /usr/bin/nvcc 11.8
refuses 'built without CUDA' check hetseq_require_same_cuda '' 13.0
refuses 'LibTorch was built with CUDA 12, nvcc is of CUDA 13' check hetseq_require_same_cuda libcudart.so.12 13.0
echo 'each fault stops the configuration and says what to do'
