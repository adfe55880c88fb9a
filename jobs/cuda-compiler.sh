#!/usr/bin/env bash
# Puts a CUDA compiler with its headers into build/cuda-13 or build/cuda-12, where none of that version is installed.
set -euo pipefail
source "$(dirname "$0")/common.sh"

usage='usage: jobs/cuda-compiler.sh VERSION
  VERSION   the CUDA version of LibTorch: 12.6 or 13.0. Every CUDA 12 compiles for every LibTorch of CUDA 12.
CUDA 13 comes from PyPI. PyPI has no nvcc of CUDA 12, so that of Debian 13 is taken (12.4, 87 MB).'
if [[ ! ${1-} =~ ^1[23]\.[0-9]+$ ]]; then
  usage_only "$usage" "$@"
  echo "$usage" >&2
  exit 64
fi
version=$1
major=${version%%.*}
toolkit=build/cuda-$major

# The version of CUDA that an nvcc is of: "13.0".
nvcc_version() { "$1" --version 2>/dev/null | sed -nE 's/.*release ([0-9.]+),.*/\1/p'; }

for nvcc in "${CUDACXX-}" "${CUDA_HOME:+$CUDA_HOME/bin/nvcc}" "${CUDA_PATH:+$CUDA_PATH/bin/nvcc}" \
  "$(command -v nvcc || true)" /usr/local/cuda/bin/nvcc "$toolkit/bin/nvcc"; do
  if [[ -x $nvcc && $(nvcc_version "$nvcc") == "$major".* ]]; then
    exit 0
  fi
done

by_hand="Install CUDA $major yourself and put its nvcc on PATH."
if [[ $(uname -m) != x86_64 ]]; then
  echo "A compiler of CUDA $major is installed for x86_64 alone, and this is $(uname -m). $by_hand" >&2
  exit 69
fi
if [[ $major == 12 ]] && ! command -v dpkg-deb >/dev/null; then
  echo "dpkg-deb is missing, which unpacks Debian's CUDA 12. $by_hand" >&2
  exit 69
fi
say "installing a compiler of CUDA $major into $toolkit"
mkdir -p build
partial=$toolkit.partial.$$
trap 'rm -rf "$partial" "$partial.parts"' EXIT
mkdir -p "$partial.parts"

wheels() {
  PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --no-compile --no-deps --target "$partial.parts/wheels" "$@" || {
    echo "pip could not install the parts of CUDA $major (its reason is above). Try again. Or: $by_hand" >&2
    exit 69
  }
}

if [[ $major == 13 ]]; then
  wheels {nvidia-cuda-nvcc,nvidia-nvvm,nvidia-cuda-crt,nvidia-cuda-runtime,nvidia-cuda-cccl}"==$version.*"
  mv "$partial.parts/wheels/nvidia/cu13" "$partial"
else
  wheels 'nvidia-cuda-nvcc-cu12==12.4.131' 'nvidia-cuda-runtime-cu12==12.4.127' 'nvidia-cuda-cccl-cu12==12.4.127.post1'
  deb=nvidia-cuda-toolkit_12.4.131~12.4.1-2_amd64.deb
  by_hand=$by_hand python3 - "$partial.parts/$deb" "http://deb.debian.org/debian/pool/non-free/n/nvidia-cuda-toolkit/$deb" \
    cd5fe85aee38d108b315f408a688641478f2402622a10c677478eb7a6c4e5319 <<'PYTHON'
import hashlib, os, sys, urllib.request
path, url, expected = sys.argv[1:]
def stop(problem):
    print(problem, os.environ["by_hand"], file=sys.stderr)
    sys.exit(69)
try:
    content = urllib.request.urlopen(url, timeout=60).read()
except OSError as error:
    stop(f"{url} could not be read ({error}).")
if hashlib.sha256(content).hexdigest() != expected:
    stop(f"{url} is not the file that was tried (its SHA-256 is another).")
open(path, "wb").write(content)
PYTHON
  dpkg-deb -x "$partial.parts/$deb" "$partial.parts/deb"
  mkdir -p "$partial"/{bin,include,nvvm/bin}
  debian=$partial.parts/deb/usr
  mv "$debian"/bin/{bin2c,cudafe++,fatbinary,nvlink,ptxas,__nvcc_device_query} "$debian"/lib/nvidia-cuda-toolkit/bin/{nvcc,crt} "$partial/bin"
  mv "$debian"/lib/nvidia-cuda-toolkit/bin/cicc "$partial/nvvm/bin"
  for part in cuda_nvcc cuda_runtime cuda_cccl; do
    cp -al "$partial.parts/wheels/nvidia/$part/include/." "$partial/include/"
  done
  mv "$partial.parts/wheels/nvidia/cuda_nvcc/nvvm/libdevice" "$partial/nvvm"
  mv "$partial.parts/wheels/nvidia/cuda_runtime/lib" "$partial/lib"
  # What NVIDIA's own toolkit says here; Debian's names its own folders.
  cat >"$partial/bin/nvcc.profile" <<'PROFILE'
TOP              = $(_HERE_)/..
NVVMIR_LIBRARY_DIR = $(TOP)/$(_NVVM_BRANCH_)/libdevice
LD_LIBRARY_PATH += $(TOP)/lib:
PATH            += $(TOP)/$(_NVVM_BRANCH_)/bin:$(_HERE_):
INCLUDES        +=  "-I$(TOP)/include" $(_SPACE_)
LIBRARIES        =+ $(_SPACE_) "-L$(TOP)/lib64"
CUDAFE_FLAGS    +=
PTXAS_FLAGS     +=
PROFILE
fi
chmod +x "$partial"/bin/* "$partial"/nvvm/bin/*

# Where and under which names CMake and the linker look for the libraries.
ln -sfn lib "$partial/lib64"
ln -sf "libcudart.so.$major" "$partial/lib/libcudart.so"
# nvcc names two archives to every link, which PyPI's CUDA 12 lacks. The runtime is the shared one here; of the other
# nothing is used.
[[ -e $partial/lib/libcudart_static.a ]] || echo 'INPUT(-lcudart)' >"$partial/lib/libcudart_static.a"
[[ -e $partial/lib/libcudadevrt.a ]] || ar rcs "$partial/lib/libcudadevrt.a"
installed=$(nvcc_version "$partial/bin/nvcc") || { echo "The nvcc that was installed does not run. $by_hand" >&2; exit 69; }
rm -rf "$toolkit"
mv -T "$partial" "$toolkit"
say "installed CUDA $installed ($(du -sh "$toolkit" | cut -f1))"
