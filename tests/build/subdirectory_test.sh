#!/usr/bin/env bash
# usage: tests/build/subdirectory_test.sh LIBTORCH_DIR
# hetseq configures as a folder of another project, whose program can link it.
set -euo pipefail
libtorch=${1:?usage: subdirectory_test.sh LIBTORCH_DIR}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { cat "$work/log"; echo "FAILED: $*"; exit 1; }

cat >"$work/CMakeLists.txt" <<EOF
cmake_minimum_required(VERSION 3.21)
project(parent LANGUAGES C CXX)
add_subdirectory($PWD hetseq)
add_executable(program program.cpp)
target_link_libraries(program PRIVATE hetseq::hetseq)
EOF
cp tests/extending/softmax_regression.cpp "$work/program.cpp"
cmake -S "$work" -B "$work/build" -G Ninja -DHETSEQ_LIBTORCH_DIR="$libtorch" >"$work/log" 2>&1 || fail configure
[[ -f $work/build/hetseq/generated/hetseq/version.hpp ]] || fail 'version.hpp was not made'
ninja -C "$work/build" -t commands program >"$work/log" 2>&1 || fail 'its program cannot be built'
grep -q -- '-o program .*hetseq/lib/libhetseq.so' "$work/log" || fail 'its program does not link hetseq'
ninja -C "$work/build" -t targets all >"$work/log"
! grep -q '^test_' "$work/log" || fail "hetseq's tests are part of the other project"
echo 'configured as a folder of another project'
