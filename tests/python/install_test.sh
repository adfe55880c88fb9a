#!/usr/bin/env bash
# usage: tests/python/install_test.sh
# pip installs the package into an environment that has torch, without a network: it is built for that torch, trains on
# two ranks, refuses another torch, and goes away again. Without torch, pip says what to do.
set -euo pipefail
fail() { cat "$work/log"; echo "FAILED: $*"; exit 1; }
if [[ ! -e build/python/.complete ]]; then
  echo 'SKIPPED: there is no build/python (jobs/setup.sh --python makes it)'
  exit 77
fi
work=$(mktemp -d -p build)
work=$(realpath "$work")
trap 'rm -rf "$work"' EXIT
unset PYTHONPATH HETSEQ_PYTHON_LIBRARY
export PIP_NO_INDEX=1 PIP_DISABLE_PIP_VERSION_CHECK=1

build/python/bin/python -m venv "$work/venv"
python=$work/venv/bin/python
site=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
before=$(ls "$site" "$work/venv/bin")
# install EXIT_CODE PIP_ARGUMENT...: what pip prints is in log.
install() {
  local expected=$1 rc=0; shift
  "$python" -m pip install --verbose "$@" ./python >"$work/log" 2>&1 || rc=$?
  ((rc == expected)) || fail "pip ended with $rc, expected $expected"
}
says() { grep -qE -- "$1" "$work/log" || fail "no word of '$1'"; }

install 1
says 'python[0-9.]* cannot import torch .*: install torch first'

# This environment sees the packages of build/python, as it sees those that are installed into it.
cp build/python/.complete "$site/other.pth"
build/python/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' >>"$site/other.pth"
install 0 --config-settings cuda=off
says 'building for torch 2\.[0-9.]+ of .*, CPU \(cuda=off was asked for\)'
"$python" -m pip show hetseq >"$work/log"
says '^Version: [0-9]+\.[0-9]+\.[0-9]+$'
says 'built for torch 2\.[0-9.]+, CPU'
"$python" -m pip list 2>/dev/null | grep -c '^torch ' | grep -qx 1 || fail 'not one torch'
[[ ! -e $site/torch ]] || fail 'pip installed a torch'

cd "$work"
venv/bin/hetseq --version | grep -q '^hetseq ' || fail 'the program does not run'
! ldd "$site"/hetseq/bin/hetseq "$site"/hetseq/lib/*.so* | grep 'not found' || fail 'libraries are missing'

library=$("$python" - <<'PYTHON'
import numpy, hetseq, hetseq._library as library
random = numpy.random.default_rng(1)
x = random.standard_normal((640, 4)).astype("float32")
hetseq.write_shards({"x": x, "y": x @ numpy.array([1, -2, 3, 4], "float32")}, "shards")
print(library.find_library())
PYTHON
)
[[ $library == "$site/hetseq/lib/libhetseq_python.so" ]] || fail "the library is $library"
cat >task.py <<'PYTHON'
import torch, hetseq

class Line(hetseq.Task):
    fields = {"x": hetseq.Field(torch.float32, shape=(4,)), "y": hetseq.Field(torch.float32)}
    losses = ["squares"]
    def model(self, config):
        return torch.nn.Linear(4, 1)
    def weights(self, batch):
        return {"squares": len(batch["y"])}
    def forward(self, model, batch):
        return {"squares": (model(batch["x"])[:, 0] - batch["y"]).square().sum()}
PYTHON
# The program goes on as the Python of its environment.
timeout 120 mpirun -np 2 venv/bin/hetseq train task.py:Line --data 'shards/*.h5' --save-dir run --max-epoch 3 \
  --batch-size 64 --lr 0.01 >log 2>&1 || fail 'it does not train'
says 'finished: '
cd - >/dev/null

sed -i 's/"torch": "[0-9.]*"/"torch": "2.0.9"/' "$site/hetseq/lib/libhetseq_python.json"
! "$python" -c 'import hetseq' >"$work/log" 2>&1 || fail 'another torch is accepted'
says '^ImportError: hetseq was built for torch 2\.0\.9, and this is torch '

"$python" -m pip uninstall -y hetseq >"$work/log" 2>&1 || fail uninstall
rm "$site/other.pth"
diff <(echo "$before") <(ls "$site" "$work/venv/bin") || fail 'this was left'

install 1 --editable
says 'an editable installation is not supported'
echo 'installed, used and uninstalled'
