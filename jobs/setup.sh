#!/usr/bin/env bash
# Installs what hetseq is built with, where it is missing: Debian packages, and LibTorch into build/.
set -euo pipefail
source "$(dirname "$0")/common.sh"

usage='usage: jobs/setup.sh [--cuda]
  --cuda                   also the CUDA libraries that LibTorch loads (3.3 GB)
environment:
  HETSEQ_LIBTORCH_DIR      your own LibTorch: none is installed (one on CMAKE_PREFIX_PATH is taken as well)
  HETSEQ_SKIP_PACKAGES=1   modules or conda provide the libraries: no Debian package is looked for'

packages=(g++ cmake ninja-build ccache libopenmpi-dev openmpi-bin libhdf5-openmpi-dev
  libboost-program-options-dev nlohmann-json3-dev libspdlog-dev libxxhash-dev zlib1g-dev libsentencepiece-dev
  libutf8proc-dev libgtest-dev libgmock-dev python3 python3-pip iproute2 dataset-fashion-mnist)
libtorch=build/libtorch-2.11.0
cpu_wheels=('torch==2.11.0' 'nvidia-cuda-runtime==13.0.*' 'nvidia-cuda-cupti==13.0.*')

missing_packages() {
  local installed package
  # dpkg-query fails where it does not know a package, and still lists the others.
  installed=" $({ dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${packages[@]}" 2>/dev/null || true; } |
    sed -n 's/^installed //p' | tr '\n' ' ') "
  for package in "${packages[@]}"; do
    [[ $installed == *" $package "* ]] || echo "$package"
  done
}

explain_missing() {
  cat >&2 <<EOF
Missing: $*
This needs root or sudo:  apt-get install --no-install-recommends $*
Without either, take them from your site's modules or from conda, then set HETSEQ_SKIP_PACKAGES=1 and run this again:
  modules:  module load gcc cmake ninja openmpi hdf5 boost      (hdf5 built with that MPI; the names vary with the site)
  conda:    conda create -n hetseq -c conda-forge gxx=12 cmake ninja ccache openmpi 'hdf5=*=mpi_openmpi*' \\
              libboost-devel nlohmann_json spdlog xxhash zlib libsentencepiece libutf8proc gtest python pip && conda activate hetseq
docs/building.md tells more.
EOF
}

install_packages() {
  local missing sudo=()
  mapfile -t missing < <(missing_packages)
  ((${#missing[@]})) || return 0
  if (($(id -u) != 0)); then
    if ! command -v sudo >/dev/null || { [[ ! -t 0 ]] && ! sudo -n true 2>/dev/null; }; then
      explain_missing "${missing[@]}"
      exit 69
    fi
    sudo=(sudo)
  fi
  say "installing ${missing[*]}"
  mkdir -p build
  {
    "${sudo[@]}" apt-get update -q &&
      "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
  } >build/packages.log 2>&1 || {
    tail -n 30 build/packages.log >&2
    exit 69
  }
}

# On another system than Debian the tools show what is missing; cmake checks the libraries.
check_tools() {
  local tool missing=()
  for tool in c++ cmake ninja mpicc mpirun h5pcc python3; do
    command -v "$tool" >/dev/null || missing+=("$tool")
  done
  if ((${#missing[@]})); then
    explain_missing "${missing[@]}"
    exit 69
  fi
}

# PyPI's torch 2.11 is for Python 3.10 and later, though nothing of it but its libraries is used.
check_python() {
  python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' && return
  echo "LibTorch comes from PyPI for Python 3.10 or later; this is $(python3 --version)." >&2
  echo "Load a newer one (module load python), or name a LibTorch of your own: HETSEQ_LIBTORCH_DIR=/path/to/libtorch" >&2
  exit 69
}

users_own_libtorch() {
  local prefix sub
  [[ -n ${HETSEQ_LIBTORCH_DIR-} ]] && return 0
  IFS=: read -ra prefixes <<<"${CMAKE_PREFIX_PATH-}"
  for prefix in "${prefixes[@]}"; do
    for sub in include torch/include ../../include; do
      [[ -e $prefix/$sub/torch/csrc/api/include/torch/torch.h ]] && return 0
    done
  done
  return 1
}

# install_wheels FOLDER PIP_ARGUMENT...: all of it or nothing.
install_wheels() {
  local folder=$1; shift
  mkdir -p build
  partial=$folder.partial.$$
  trap 'rm -rf "$partial"' EXIT
  PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --no-compile --target "$partial" "$@" || {
    echo "pip could not install LibTorch (its reason is above)." >&2
    echo "Try again, or name a LibTorch of your own: HETSEQ_LIBTORCH_DIR=/path/to/libtorch" >&2
    exit 69
  }
}

install_libtorch() {
  [[ -e $libtorch ]] && return
  check_python
  say "installing LibTorch 2.11 from PyPI into $libtorch"
  install_wheels "$libtorch" --no-deps "${cpu_wheels[@]}"
  mv -T "$partial" "$libtorch"
}

# The CUDA libraries beside torch, of the versions that its metadata names.
install_cuda_libraries() {
  local wheels
  [[ -e $libtorch/.with-cuda ]] && return
  say "installing the CUDA libraries of LibTorch into $libtorch"
  mapfile -t wheels < <(sed -nE 's/^Requires-Dist: ((nvidia|cuda-toolkit)[^;]*);.*/\1/p' "$libtorch"/torch-2.11.0.dist-info/METADATA)
  install_wheels "$libtorch" "${wheels[@]}"
  cp -al --remove-destination "$partial/nvidia/." "$libtorch/nvidia/"
  touch "$libtorch/.with-cuda"
}

cuda=no
if [[ ${1-} == --cuda ]]; then
  cuda=yes
  shift
fi
usage_only "$usage" "$@"

if [[ -z ${HETSEQ_SKIP_PACKAGES-} ]] && command -v dpkg-query >/dev/null; then
  install_packages
else
  check_tools
fi
if ! users_own_libtorch; then
  install_libtorch
  if [[ $cuda == yes ]]; then
    install_cuda_libraries
  fi
fi
