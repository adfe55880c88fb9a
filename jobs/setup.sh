#!/usr/bin/env bash
# Installs what hetseq is built with, where it is missing: Debian packages, and LibTorch into build/; for Python, an
# environment in which LibTorch is torch.
set -euo pipefail
source "$(dirname "$0")/common.sh"

usage='usage: jobs/setup.sh [--cuda] [--python]
  --cuda                   also the CUDA libraries that LibTorch loads (2.7 GB), and the CUDA compiler (0.4 GB) where
                           there is none of their version
  --python                 also build/python: a virtual environment with this LibTorch as its torch, NumPy, h5py and
                           transformers, timm and peft in the versions of jobs/python-constraints.txt (0.5 GB).
                           PyPI'"'"'s torch loads CUDA libraries without a GPU too, so most of them come with it
                           (2.2 GB)
environment:
  HETSEQ_LIBTORCH_VERSION  which LibTorch of PyPI, 2.7 or later (default 2.11.0); 2.7.1 is for GPUs before Turing
                           (P100, V100). Keep it set for the build
  HETSEQ_LIBTORCH_DIR      your own LibTorch: none is installed (one on CMAKE_PREFIX_PATH is taken as well)
  HETSEQ_SKIP_PACKAGES=1   modules or conda provide the libraries: no Debian package is looked for'

packages=(g++ cmake ninja-build ccache libopenmpi-dev openmpi-bin libhdf5-openmpi-dev
  libboost-program-options-dev nlohmann-json3-dev libspdlog-dev libxxhash-dev zlib1g-dev libsentencepiece-dev
  libutf8proc-dev libgtest-dev libgmock-dev python3 python3-pip iproute2 dataset-fashion-mnist)
version=${HETSEQ_LIBTORCH_VERSION:-2.11.0}
libtorch=build/libtorch-$version
python=build/python

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
  # Debian's python3 has no ensurepip without it; other Pythons bring theirs.
  if [[ $with_python == yes ]] && ! python3 -c 'import ensurepip' 2>/dev/null; then
    packages+=(python3-venv)
  fi
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

# PyPI's torch is for Python 3.10 and later, though hetseq the program uses nothing of it but its libraries.
check_python() {
  python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' && return
  echo "LibTorch comes from PyPI for Python 3.10 or later; this is $(python3 --version)." >&2
  echo "Load a newer one (module load python), or name a LibTorch of your own: HETSEQ_LIBTORCH_DIR=/path/to/libtorch" >&2
  exit 69
}

# Succeeds where the user has a LibTorch, and prints the folder of its headers if that is found.
users_own_libtorch() {
  local prefix sub prefixes=("${HETSEQ_LIBTORCH_DIR-}")
  [[ -n ${HETSEQ_LIBTORCH_DIR-} ]] || IFS=: read -ra prefixes <<<"${CMAKE_PREFIX_PATH-}"
  for prefix in "${prefixes[@]}"; do
    for sub in include torch/include ../../include; do
      if [[ -e $prefix/$sub/torch/csrc/api/include/torch/torch.h ]]; then
        realpath "$prefix/$sub"
        return
      fi
    done
  done
  [[ -n ${HETSEQ_LIBTORCH_DIR-} ]]
}

# wheels PIP_ARGUMENT...: into the folder $partial, which is made first and removed at the end; all of it or nothing.
wheels() {
  mkdir -p build
  trap 'rm -rf "$partial"' EXIT
  PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --no-compile --target "$partial" "$@" || {
    echo "pip could not install LibTorch $version (its reason is above)." >&2
    echo "Try again, or name a LibTorch of your own: HETSEQ_LIBTORCH_DIR=/path/to/libtorch" >&2
    exit 69
  }
}

# PyPI's torch loads two CUDA libraries without a GPU too.
install_libtorch() {
  local cuda suffix=
  [[ -e $libtorch ]] && return
  [[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || {
    echo "HETSEQ_LIBTORCH_VERSION is '$version'; write a whole version of PyPI's torch, such as 2.7.1." >&2
    exit 64
  }
  check_python
  say "installing LibTorch $version from PyPI into $libtorch"
  partial=$libtorch.partial.$$
  wheels --no-deps "torch==$version"
  cuda=$(cuda_of "$partial")
  [[ $cuda != 12.* ]] || suffix=-cu12
  wheels --no-deps "nvidia-cuda-runtime$suffix==$cuda.*" "nvidia-cuda-cupti$suffix==$cuda.*"
  mv -T "$partial" "$libtorch"
}

# install_cuda_libraries all|to-import: those beside torch, of the versions that its metadata names. libtorch_cuda.so,
# which `import torch` loads, is linked with all but cuSOLVER, NVRTC and NVTX: these load with the first work on a GPU.
# (Of CUDA 12 all are taken.)
install_cuda_libraries() {
  local named part
  [[ -e $libtorch/.with-cuda || -e $libtorch/.with-cuda-$1 ]] && return
  say "installing the CUDA libraries of LibTorch $version into $libtorch"
  mapfile -t named < <(sed -nE 's/^Requires-Dist: ((nvidia|cuda-toolkit)[^;]*);.*/\1/p' "$libtorch/torch-$version.dist-info/METADATA")
  if [[ $1 == to-import ]]; then
    mapfile -t named < <(printf '%s\n' "${named[@]}" | sed -E '/^cuda-toolkit/s/,(cusolver|nvrtc|nvtx)\b//g')
  fi
  partial=$libtorch.partial.$$
  wheels "${named[@]}"
  for part in nvidia cusparselt; do  # torch finds the second beside itself where it is of CUDA 12
    [[ ! -d $partial/$part ]] || cp -al --remove-destination "$partial/$part" "$libtorch/"
  done
  cp -al --remove-destination "$partial"/*.dist-info "$libtorch/"  # pip knows them as installed
  if [[ $1 == all ]]; then touch "$libtorch/.with-cuda"; else touch "$libtorch/.with-cuda-$1"; fi
  rm -rf "$partial"
}

# The folder to import torch from: of the user's own LibTorch, else of the one in build/.
torch_folder() {
  local headers
  headers=$(users_own_libtorch) || { realpath "$libtorch"; return; }
  if [[ -z $headers || ! -e ${headers%/include}/__init__.py ]]; then
    echo "Your own LibTorch (${HETSEQ_LIBTORCH_DIR:-$headers}) has no Python package torch beside it." >&2
    echo "Name the torch of a Python instead: HETSEQ_LIBTORCH_DIR=\$(python3 -c 'import torch; print(torch.__path__[0])')" >&2
    return 69
  fi
  dirname "${headers%/include}"
}

# Packages beside torch whose models some tests train, and which those tests miss otherwise. They ask for another torch than
# the one that is here. A torchvision goes with one torch: 0.26 with 2.11.
install_other_packages() {
  local minor
  minor=$(sed -nE 's/^Version: 2\.([0-9]+).*/\1/p' "$1"/torch-*.dist-info/METADATA)
  "$python/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps \
    --constraint jobs/python-constraints.txt timm peft accelerate psutil pillow "torchvision==0.$((minor + 15)).*" \
    >>build/python.log 2>&1 || say "pip could not install timm and peft: the tests of their models skip (build/python.log)"
}

# What torch itself needs that is no CUDA library, and what the Python tests use. All of it or nothing: .complete, which
# names the torch, is written last.
install_python() {
  local torch requirements
  torch=$(torch_folder)
  ! cmp -s "$python/.complete" - <<<"$torch" || return 0
  say "making the Python environment $python with the torch of $torch"
  rm -f "$libtorch/.with-bytecode"  # that of another Python, perhaps
  trap '[[ -e $python/.complete ]] || rm -rf "$python"' EXIT
  rm -rf "$python"
  python3 -m venv "$python" || {
    rm -rf "$python"
    echo "python3 cannot make virtual environments (its reason is above): install python3-venv." >&2
    exit 69
  }
  echo "$torch" >"$("$python/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/torch.pth"
  mapfile -t requirements < <(sed -nE 's/^Requires-Dist: ([^;]*)$/\1/p' "$torch"/torch-*.dist-info/METADATA)
  "$python/bin/python" -m pip install --quiet --disable-pip-version-check \
    --constraint jobs/python-constraints.txt "${requirements[@]}" numpy h5py transformers >build/python.log 2>&1 || {  # it warns of triton, which only a GPU needs
    tail -n 30 build/python.log >&2
    echo "pip could not install what torch and the tests need (its reason is above). Try again." >&2
    exit 69
  }
  install_other_packages "$torch"
  "$python/bin/python" -c 'import torch' || {
    echo "$(python3 --version) cannot import the torch of $torch (its reason is above)." >&2
    echo "If another Python installed it, remove $torch and run this again." >&2
    exit 69
  }
  echo "$torch" >"$python/.complete"
  say "installed $python ($(du -sh "$python" | cut -f1); torch $(du -sh "$torch" | cut -f1))"
}

# The bytecode of the torch in build/, which was unpacked without. Half of an import goes into compiling it, in each process
# where Python must not write it (PYTHONDONTWRITEBYTECODE).
compile_torch() {
  [[ ! -e $libtorch/.with-bytecode && -w $libtorch/torch ]] || return 0
  "$python/bin/python" -m compileall -q -j0 "$libtorch"/{torch,torchgen,functorch} >>build/python.log 2>&1 || true
  touch "$libtorch/.with-bytecode"
}

with_cuda=no with_python=no
while [[ ${1-} == --cuda || ${1-} == --python ]]; do
  [[ $1 != --cuda ]] || with_cuda=yes
  [[ $1 != --python ]] || with_python=yes
  shift
done
usage_only "$usage" "$@"

if [[ -z ${HETSEQ_SKIP_PACKAGES-} ]] && command -v dpkg-query >/dev/null; then
  install_packages
else
  check_tools
fi
if ! users_own_libtorch >/dev/null; then
  install_libtorch
  if [[ $with_cuda == yes ]] || { [[ $with_python == yes ]] && compgen -G '/dev/nvidia[0-9]*' >/dev/null; }; then
    install_cuda_libraries all
  elif [[ $with_python == yes ]]; then
    install_cuda_libraries to-import
  fi
  if [[ $with_cuda == yes ]]; then
    jobs/cuda-compiler.sh "$(cuda_of "$libtorch")"
  fi
fi
if [[ $with_python == yes ]]; then
  install_python
  compile_torch
fi
