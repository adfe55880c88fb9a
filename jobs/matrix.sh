#!/usr/bin/env bash
# Builds and tests hetseq with several LibTorches, each in a clone of its own, as a user would. Hours, and 15 GB.
set -euo pipefail
source "$(dirname "$0")/common.sh"

usage='usage: jobs/matrix.sh [--build] [VERSION...]
  --build   only build, without tests
  VERSION   of PyPI'"'"'s torch, or newest (default 2.7.1 2.11.0 newest)
Tests the last commit on the CPU, compiles and links it with CUDA and tests it over the stand-ins, and prints a table.
Each clone stays in build/matrix/VERSION, with its logs beside it.'
tests=yes
case "${1-}" in
  --build) tests=no; shift ;;
  -*) usage_only "$usage" "$@" ;;
esac
(($#)) || set -- 2.7.1 2.11.0 newest
HETSEQ_TEST_DATA=$(realpath -m "${HETSEQ_TEST_DATA:-../shared/data}")
export HETSEQ_TEST_DATA
newest() { python3 -m pip index versions torch 2>/dev/null | sed -nE 's/^torch \((.*)\)$/\1/p'; }

# clone VERSION: build/matrix/VERSION holds the last commit, and the LibTorch and compilers of this folder's build/.
clone() {
  local folder=build/matrix/$1 part
  env -u HETSEQ_LIBTORCH_DIR -u CMAKE_PREFIX_PATH HETSEQ_LIBTORCH_VERSION="$1" jobs/setup.sh --cuda
  [[ -e $folder/.git ]] || git clone --quiet . "$folder"
  git -C "$folder" fetch --quiet origin HEAD
  git -C "$folder" checkout --quiet --force --detach FETCH_HEAD
  mkdir -p "$folder/build"
  for part in "libtorch-$1" cuda-12 cuda-13; do
    [[ ! -e build/$part || -e $folder/build/$part ]] || cp -al "build/$part" "$folder/build/"
  done
}

# in_clone VERSION COMMANDS
in_clone() {
  env -u HETSEQ_LIBTORCH_DIR -u CMAKE_PREFIX_PATH HETSEQ_LIBTORCH_VERSION="$1" tests="$tests" \
    bash -euo pipefail -c "cd build/matrix/$1; source jobs/common.sh; $2"
}

# How ctest ended: "89 passed, 0 failed, 5 skipped".
outcome() {
  python3 - "$1" <<'PYTHON'
import os, sys, xml.etree.ElementTree as tree
junit = sys.argv[1]
if not os.path.exists(junit):
    sys.exit(print("built") or 0)
suite = tree.parse(junit).getroot()
total, failed, skipped = (int(suite.get(name, 0)) for name in ("tests", "failures", "skipped"))
print(f"{total - failed - skipped} passed, {failed} failed, {skipped} skipped")
PYTHON
}

table=build/matrix/table.md
mkdir -p build/matrix
printf '| LibTorch | CUDA | compiled by | for | tests on the CPU | over the stand-ins |\n|---|---|---|---|---|---|\n' >"$table"
failed=0
for version in "$@"; do
  if [[ $version == newest ]]; then
    version=$(newest)
    [[ -n $version ]] || { echo 'PyPI does not say which torch is the newest: give its version' >&2; exit 69; }
  fi
  clone "$version"
  folder=build/matrix/$version
  cpu='did not build' cuda='did not build'
  rm -f "$folder"/build/*/junit.xml "$folder"/build/*/bin/hetseq
  # shellcheck disable=SC2016  # the variables of the clone's shell
  in_clone "$version" 'jobs/setup.sh --python; configure_and_build cpu; [[ $tests == no ]] || run_tests cpu' \
    >"$folder.cpu.log" 2>&1 || failed=1
  # shellcheck disable=SC2016
  in_clone "$version" 'configure_and_build cuda; [[ $tests == no ]] || run_tests cuda -L "gpu|stand-in"' \
    >"$folder.cuda.log" 2>&1 || failed=1
  [[ ! -x $folder/build/cpu/bin/hetseq ]] || cpu=$(outcome "$folder/build/cpu/junit.xml")
  [[ ! -x $folder/build/cuda/bin/hetseq ]] || cuda=$(outcome "$folder/build/cuda/junit.xml")
  found=$(sed -nE 's/^-- CUDA ([0-9.]+) for ([^,]+), NCCL ([0-9.]+) .*/\1|\2/p' "$folder/build/cuda-configure.log") || found='-|-'
  built_with=$(cuda_of "$folder/build/libtorch-$version") || built_with=-
  echo "| $version | $built_with | ${found%|*} | ${found#*|} | $cpu | $cuda |" | tee -a "$table"
done
say "the table is $table"
exit $failed
