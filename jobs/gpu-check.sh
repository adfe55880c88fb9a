#!/usr/bin/env bash
# On a machine with GPUs: builds hetseq with CUDA, runs the tests that need a GPU, checks the invariants between CPU and
# GPUs, measures a little, and packs a report to send back.
set -euo pipefail
source "$(dirname "$0")/common.sh"

usage='usage: jobs/gpu-check.sh [RANKS]     (default: one for each GPU of this host)
The report is build/gpu-check/report.tar.gz. Exit codes: 0 all is well, 1 something failed (the report says what),
71 there is no GPU here.
environment:
  HETSEQ   an installed hetseq with CUDA; nothing is built then, and the tests of the build are left out
  PYTHON   a Python with torch for CUDA, numpy and h5py, to compare with (default: the one that is set up where hetseq is
           built; with HETSEQ alone nothing is compared)'
[[ ${1-} != -h && ${1-} != --help ]] || { echo "$usage"; exit 0; }
[[ $# -le 1 && ${1-1} =~ ^[1-9][0-9]*$ ]] || { echo "$usage" >&2; exit 64; }

no_gpu() { echo "no GPU: $*" >&2; exit 71; }
command -v nvidia-smi >/dev/null || no_gpu 'there is no nvidia-smi on this machine. Run this where an NVIDIA driver is.'
gpus=$(nvidia-smi --list-gpus 2>&1) || no_gpu "nvidia-smi failed ($gpus)"
count=$(grep -c '^GPU ' <<<"$gpus") || no_gpu "nvidia-smi lists none ($gpus). Ask the scheduler for one."
ranks=${1:-$count}

report=build/gpu-check/report
rm -rf build/gpu-check
mkdir -p "$report"
failures=()
# step NAME COMMAND...: its output is a file of the report; a failure does not end the check.
step() {
  local name=$1; shift
  say "$name"
  if "$@" >"$report/${name// /-}.log" 2>&1; then
    echo ok
  else
    failures+=("$name (exit code $?)")
    tail -n 15 "$report/${name// /-}.log"
  fi
}

build_it() { jobs/setup.sh --cuda --python && configure_and_build cuda; }
on_ranks() { mpirun -np "$1" "$hetseq" "${@:2}"; }
describe() {
  nvidia-smi
  nvidia-smi --query-gpu=index,name,uuid,compute_cap,driver_version,memory.total,clocks.max.sm,pcie.link.gen.current --format=csv
  nvidia-smi topo -m || true
  "$hetseq" info
  git log -1 --format='revision %H' || true
}

# Images by formula, as tests/end_to_end makes them, for machines without any data.
make_data() {
  python3 - "$work/idx" <<'PYTHON'
import os, random, struct, sys
folder, count = sys.argv[1], 4000
os.makedirs(folder)
generator = random.Random(1)
with open(f"{folder}/train-images-idx3-ubyte", "wb") as images, open(f"{folder}/train-labels-idx1-ubyte", "wb") as labels:
    images.write(struct.pack(">4i", 0x803, count, 28, 28))
    labels.write(struct.pack(">2i", 0x801, count))
    for _ in range(count):
        label = generator.randrange(10)
        pixels = bytearray(generator.randrange(96) for _ in range(784))
        for row in range(8):
            for column in range(4):
                pixels[(4 + 12 * (label // 5) + row) * 28 + 2 + 5 * (label % 5) + column] += 120
        images.write(pixels)
        labels.write(bytes([label]))
PYTHON
  "$hetseq" prepare images "$work"/idx/* --output "$work/data"
}

# largest_difference A B TOLERANCE: of two model.safetensors, |a - b| / max(1, |a|).
largest_difference() {
  python3 - "$@" <<'PYTHON'
import array, json, struct, sys
def read(path):
    data = open(path, "rb").read()
    length, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    return {name: array.array({"F64": "d", "F32": "f"}[entry["dtype"]], data[slice(*(8 + length + o for o in entry["data_offsets"]))])
            for name, entry in header.items()}
a, b, tolerance = read(sys.argv[1]), read(sys.argv[2]), float(sys.argv[3])
assert a.keys() == b.keys() and a, "the models hold other tensors"
largest = max(abs(x - y) / max(1, abs(x)) if x == x and y == y else float("inf") for name in a for x, y in zip(a[name], b[name], strict=True))
print(f"largest difference {largest:.3g}, allowed {tolerance:.3g}")
sys.exit(largest > tolerance)
PYTHON
}

# train NAME RANKS OPTION...: the same ten updates, in $work/NAME.
train() {
  local name=$1 n=$2; shift 2
  on_ranks "$n" train --task mnist --data "$work/data" --batch-size 256 --max-sentences 64 --max-update 10 --dropout 0.2 \
    --optimizer sgd --lr 0.05 --clip-norm 5 --cache-dir none --save-dir "$work/$name" --overwrite "$@"
}
equivalence() { # PRECISION TOLERANCE
  train "cpu-$1" 1 --device cpu --precision "$1" || return
  train "gpu-$1" "$ranks" --device cuda --precision "$1" || return
  largest_difference "$work/cpu-$1/model.safetensors" "$work/gpu-$1/model.safetensors" "$2"
}
restart() {
  train whole "$ranks" --device cuda --balance declared || return
  train parts "$ranks" --device cuda --balance declared --max-update 5 --total-num-update 10 || return
  on_ranks "$ranks" train "$work/parts/config.cfg" --max-update 10 --save-dir "$work/parts" || return
  largest_difference "$work/whole/model.safetensors" "$work/parts/model.safetensors" 0
}
measure() { # NAME OPTION...
  local name=$1; shift
  on_ranks "$ranks" bench "$@" --device cuda --json >"$report/$name.json" || return
  cat "$report/$name.json"
}

# The same network, batches and precision under PyTorch's DistributedDataParallel over NCCL.
pytorch() { # NAME OPTION...
  local name=$1; shift
  mpirun -np "$ranks" "$python" jobs/compare/mnist_ddp.py "$work/data/train*.h5" --batch 256 --updates 300 --device cuda "$@" \
    >"$report/$name.json" || return
  cat "$report/$name.json"
  python3 - "$report/mnist.json" "$report/$name.json" <<'PYTHON'
import json, sys
ours, theirs = (json.load(open(path))["samples_per_second"]["median"] for path in sys.argv[1:])
print(f"hetseq {ours:.0f} samples/s, PyTorch {theirs:.0f}: {ours / theirs:.2f} times")
PYTHON
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
allow_ranks "$ranks"
hetseq=${HETSEQ:-build/cuda/bin/hetseq}
if [[ -z ${HETSEQ-} ]]; then
  step 'build' build_it
fi
step 'machine' describe
"$hetseq" info 2>&1 | grep -q '^CUDA .*[0-9]' || { echo "$hetseq was built without CUDA, or does not run: see $report" >&2; exit 1; }
if [[ -z ${HETSEQ-} ]]; then
  step 'tests with a GPU' run_tests cuda -L gpu
fi
step 'data' make_data
step 'equivalence in fp64' equivalence fp64 1e-12
step 'equivalence in fp32' equivalence fp32 1e-3
step 'restart' restart
((ranks == 1)) || step 'bench reduce' measure reduce reduce
step 'bench mnist' measure mnist step --task mnist --data "$work/data" --batch-size $((256 * ranks)) --max-sentences 256 --max-update 300
python=${PYTHON-}
[[ -n $python || -n ${HETSEQ-} ]] || python=build/python/bin/python
if [[ -n $python ]]; then
  step 'pytorch mnist' pytorch pytorch
  step 'pytorch mnist tuned' pytorch pytorch-tuned --tuned
fi

{
  nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
  echo "$ranks ranks"
  ((${#failures[@]} == 0)) && echo 'all is well' || printf 'FAILED: %s\n' "${failures[@]}"
} | tee "$report/SUMMARY"
tar -czf "$report.tar.gz" -C build/gpu-check report
say "please send $report.tar.gz to the maintainers (it names this host's GPUs and paths, and holds no data)"
((${#failures[@]} == 0))
