#!/usr/bin/env bash
# jobs/setup.sh on machines that lack something: what it installs, what it says, and what it leaves behind.
# The machine is played by small programs on PATH; the script runs in a copy of the repository's jobs/.
# shellcheck disable=SC2016  # the programs' own variables
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { cat "$work/log"; echo "FAILED: $*"; exit 1; }
mkdir "$work/bin"
cp -r jobs "$work/jobs"

# plays PROGRAM SCRIPT
plays() { printf '#!/bin/bash\n%s\n' "$2" >"$work/bin/$1"; chmod +x "$work/bin/$1"; }
# setup EXIT_CODE ARGUMENT...: it ends so; what it printed is in $work/log.
setup() {
  local expected=$1 rc=0; shift
  env -u HETSEQ_LIBTORCH_VERSION -u HETSEQ_LIBTORCH_DIR -u CMAKE_PREFIX_PATH -u HETSEQ_SKIP_PACKAGES PATH="$work/bin:$PATH" "${machine[@]}" \
    bash "$work/jobs/setup.sh" "$@" </dev/null >"$work/log" 2>&1 || rc=$?
  ((rc == expected)) || fail "exit code $rc, expected $expected"
}
says() { grep -qF -- "$1" "$work/log" || fail "no word of '$1'"; }
machine=(HETSEQ_LIBTORCH_DIR=/opt/libtorch)

nothing='for p in "${@:4}"; do echo "no package $p" >&2; done; exit 1'
all_but_spdlog='for p in "${@:4}"; do [[ $p == libspdlog-dev ]] || echo "installed $p"; done; exit 1'
everything='for p in "${@:4}"; do echo "installed $p"; done'
plays apt-get "echo \"\$@\" >>$work/apt-get"

# No root, packages missing: says which, and how modules or conda provide them; installs nothing.
plays id 'echo 1000'
plays sudo 'exit 1'
plays dpkg-query "$nothing"
setup 69
says 'Missing: g++ cmake'
says 'module load'
says 'conda create'
[[ ! -e $work/apt-get && ! -e $work/build ]] || fail 'it did something'

# Root: just the missing package is installed.
plays id 'echo 0'
plays dpkg-query "$all_but_spdlog"
setup 0
grep -qx 'install -q -y --no-install-recommends libspdlog-dev' "$work/apt-get" || fail "apt-get: $(cat "$work/apt-get")"

# Everything there: nothing is installed. A LibTorch of one's own is taken.
rm "$work/apt-get"
plays dpkg-query "$everything"
setup 0
[[ ! -e $work/apt-get && ! -e $work/build/libtorch-2.11.0 ]] || fail 'it installed something'
mkdir -p "$work"/site/include/torch/csrc/api/include/torch
touch "$work"/site/include/torch/csrc/api/include/torch/torch.h
machine=(CMAKE_PREFIX_PATH="/opt/other:$work/site")
setup 0
[[ ! -e $work/build/libtorch-2.11.0 ]] || fail "it passed the user's LibTorch over"

# An interrupted installation of LibTorch leaves nothing; the next one completes.
machine=(A=1)
install='[[ $1 != -c ]] || exit 0
echo "$*" >>"$(dirname "$0")/../pip_asked"
while [[ $1 != --target ]]; do shift; done
mkdir -p "$2/torch"
echo "cuda: Optional[str] = '\''${CUDA:-13.0}'\''" >"$2/torch/version.py"'
plays python3 "$install; exit 1"
setup 69
says 'HETSEQ_LIBTORCH_DIR=/path/to/libtorch'
! compgen -G "$work/build/libtorch*" >/dev/null || fail 'a part of LibTorch was left'
plays python3 "$install"
setup 0
[[ -d $work/build/libtorch-2.11.0/torch ]] || fail 'no LibTorch'
setup 0
[[ $(ls "$work/build") == $'libtorch-2.11.0\npackages.log' ]] || fail "also left: $(ls "$work/build")"

# Another LibTorch, with the two libraries of its own CUDA that it loads without a GPU too.
machine=(HETSEQ_LIBTORCH_VERSION=2.7.1 CUDA=12.6)
setup 0
[[ -d $work/build/libtorch-2.7.1/torch ]] || fail 'no LibTorch 2.7.1'
tail -n 2 "$work/pip_asked" | grep -q ' torch==2.7.1$' || fail "pip: $(<"$work/pip_asked")"
tail -n 1 "$work/pip_asked" | grep -qF ' nvidia-cuda-runtime-cu12==12.6.* nvidia-cuda-cupti-cu12==12.6.*' ||
  fail "pip: $(<"$work/pip_asked")"
# --cuda: no compiler where there is one of that major version.
plays nvcc 'echo "Cuda compilation tools, release 12.8, V12.8.93"'
touch "$work/build/libtorch-2.7.1/.with-cuda"
setup 0 --cuda
[[ ! -e $work/build/cuda-12 ]] || fail 'it installed a second compiler'
machine=(HETSEQ_LIBTORCH_VERSION=2.7)
setup 64
says "HETSEQ_LIBTORCH_VERSION is '2.7'; write a whole version"
machine=(A=1)

# --python: torch's own requirements but for those of one platform, in an environment that sees the torch in build/.
plays python3 '
case "$1 $2" in
  "-m venv")
    mkdir -p "$3/bin" "$3/site-packages"
    printf "%s\n" "#!/bin/bash" "echo \"\$*\" >>$(dirname "$0")/../asked" \
      "case \"\$*\" in *sysconfig*) echo $3/site-packages ;; *numpy*) exit \${PIP_FAILS:-0} ;; esac" >"$3/bin/python"
    chmod +x "$3/bin/python" ;;
  "-m pip")
    [[ " $* " != *" cuda-toolkit"* ]] || echo "$*" >>"$(dirname "$0")/../cuda_asked"
    while [[ $1 != --target ]]; do shift; done
    mkdir -p "$2"/{torch,nvidia/nccl,torch-2.11.0.dist-info}
    echo "cuda: Optional[str] = '\''13.0'\''" >"$2/torch/version.py"
    printf "Requires-Dist: %s\n" filelock "sympy>=1.13" "cuda-toolkit[cublas,cusolver,nvrtc]==13.0.2; platform_system == \"Linux\"" \
      "triton==3.6.0; platform_system == \"Linux\"" "optree; extra == \"optree\"" >"$2/torch-2.11.0.dist-info/METADATA" ;;
esac'
rm -rf "$work/build"
machine=(PIP_FAILS=1)
setup 69 --python
says 'pip could not install what torch and the tests need'
[[ ! -e $work/build/python ]] || fail 'a part of the environment was left'
# Those that import torch needs are enough where there is no GPU.
libraries='cublas'
! compgen -G '/dev/nvidia[0-9]*' >/dev/null || libraries='cublas,cusolver,nvrtc'
tail -n 1 "$work/cuda_asked" | grep -qF " cuda-toolkit[$libraries]==13.0.2" || fail "pip: $(<"$work/cuda_asked")"
rm "$work/asked"
machine=(A=1)
setup 0 --python
says 'installed build/python'
[[ $(<"$work/build/python/site-packages/torch.pth") == "$work/build/libtorch-2.11.0" ]] || fail 'it sees no torch'
grep -qE '^-m pip install .*--constraint jobs/python-constraints.txt filelock sympy>=1.13 numpy h5py transformers$' "$work/asked" || fail "pip: $(<"$work/asked")"
asked=$(<"$work/asked")
setup 0 --python
[[ $(<"$work/asked") == "$asked" ]] || fail 'it made the environment again'
plays nvcc 'echo "Cuda compilation tools, release 13.0, V13.0.88"'
setup 0 --cuda --python
tail -n 1 "$work/cuda_asked" | grep -qF ' cuda-toolkit[cublas,cusolver,nvrtc]==13.0.2' || fail "pip: $(<"$work/cuda_asked")"
machine=(CMAKE_PREFIX_PATH="$work/site")
setup 69 --python
says 'has no Python package torch beside it'
[[ -e $work/build/python/.complete ]] || fail 'it removed the environment'

setup 64 --gpu
says 'usage: jobs/setup.sh'
echo 'setup.sh does what each machine needs'
