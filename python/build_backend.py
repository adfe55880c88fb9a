"""What pip calls to build hetseq's wheel (PEP 517): CMake, against the torch of the environment it is installed in.

The wheel holds the package, libhetseq.so, libhetseq_python.so and the program `hetseq`, none of which is linked to
Python, and libhetseq_python.json, which says what torch they are for. The torch itself is no requirement of the wheel:
pip could satisfy that by another one.

Settings (pip install --config-settings NAME=VALUE): cuda=auto, on or off. CMAKE_ARGS in the environment holds more
arguments of CMake.
"""
from __future__ import annotations

import base64
import contextlib
import fcntl
import hashlib
import json
import os
import pathlib
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent  # of the repository
OLDEST_CMAKE = (3, 21)

TORCH_OF_PYTHON = """
import json, torch
print(json.dumps({"version": torch.__version__.split("+")[0], "folder": torch.__path__[0], "cuda": torch.version.cuda}))
"""

# The program is of one environment, so that the script finds it beside the package; torch is not imported.
SCRIPT = """#!python
import importlib.util, os, sys
package = importlib.util.find_spec("hetseq").submodule_search_locations[0]
os.environ.setdefault("HETSEQ_PYTHON", sys.executable)
os.execv(os.path.join(package, "bin", "hetseq"), ["hetseq", *sys.argv[1:]])
"""


def stop(message: str):
    sys.exit(f"hetseq: {message}")


def say(message: str) -> None:
    print(f"hetseq: {message}", flush=True)


def version() -> str:
    if not (ROOT / "CMakeLists.txt").exists():
        stop(f"{HERE} is no part of hetseq's sources any more (a pip before 21.3 copies it): use a newer pip")
    return re.search(r"project\(hetseq VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]


def environment_without_isolation() -> dict[str, str]:
    """pip's isolation stands in two variables, which hide what the environment has."""
    environment = dict(os.environ)
    if "pip-build-env-" in environment.get("PYTHONPATH", ""):
        del environment["PYTHONPATH"]
        environment.pop("PYTHONNOUSERSITE", None)
    return environment


def find_torch() -> dict[str, str | None]:
    """The version, folder and CUDA version of the torch that the package is for. Other tools than pip build with a
    Python of their own; then the active environment's is asked."""
    pythons = [sys.executable]
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        python = os.path.join(os.environ.get(variable, ""), "bin", "python")
        if os.environ.get(variable) and os.path.exists(python):
            pythons.append(python)
    reason = ""
    for python in pythons:
        asked = subprocess.run([python, "-c", TORCH_OF_PYTHON], cwd="/", capture_output=True, text=True, check=False,
                               env=environment_without_isolation())
        if asked.returncode == 0:
            return json.loads(asked.stdout.splitlines()[-1])
        reason = reason or (asked.stderr.strip().splitlines() or ["it gives no reason"])[-1]
    stop(f"{pythons[0]} cannot import torch ({reason}), and hetseq is built for the torch that it will be used with: "
         "install torch first (pip install torch). If it is on PYTHONPATH: pip install --no-build-isolation")


def find_nvcc() -> str | None:
    places = [os.environ.get("CUDACXX", ""), shutil.which("nvcc") or ""]
    places += [os.path.join(os.environ[name], "bin", "nvcc")
               for name in ("CUDA_HOME", "CUDA_PATH") if name in os.environ]
    return next((place for place in [*places, "/usr/local/cuda/bin/nvcc"] if place and os.path.exists(place)), None)


def chooses_cuda(torch: dict[str, str | None], wanted: str) -> tuple[bool, str]:
    """(whether to build for CUDA, why)"""
    if wanted not in ("auto", "on", "off"):
        stop(f"the setting cuda={wanted} is unknown: give auto, on or off")
    if wanted != "auto":
        return wanted == "on", f"cuda={wanted} was asked for"
    if not torch["cuda"]:
        return False, "this torch has no CUDA"
    nvcc = find_nvcc()
    if not nvcc:
        return False, f"no nvcc was found for this torch with CUDA {torch['cuda']}"
    banner = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=False).stdout
    release = (re.findall(r"release ([0-9.]+)", banner) or ["?"])[0]
    if release.split(".")[0] != torch["cuda"].split(".")[0]:
        return False, f"{nvcc} is of CUDA {release}, this torch of CUDA {torch['cuda']}"
    return True, f"this torch has CUDA {torch['cuda']}, and {nvcc} is of {release}"


def has_cmake() -> bool:
    if not shutil.which("cmake"):
        return False
    banner = subprocess.run(["cmake", "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"version (\d+)\.(\d+)", banner)
    return bool(found) and (int(found[1]), int(found[2])) >= OLDEST_CMAKE


def compilers_at_once() -> int:
    """As many as there are cores, and 2 GB of memory for each."""
    memory = re.search(r"MemAvailable: *(\d+) kB", pathlib.Path("/proc/meminfo").read_text())
    by_memory = int(memory[1]) // 2_097_152 if memory else 1
    return max(1, min(len(os.sched_getaffinity(0)), by_memory))


def run(*words: str) -> None:
    say(shlex.join(words))
    if subprocess.run(words, check=False, stderr=subprocess.STDOUT).returncode != 0:
        stop(f"{words[0]} failed (its reason is above); docs/building.md tells what the build needs")


@contextlib.contextmanager
def build_folder(name: str):
    """A folder that the next build continues; where the sources cannot be written, one that is thrown away. One build
    at a time uses it."""
    folder = ROOT / "build" / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = open(folder / "lock", "w")
    except OSError:
        with tempfile.TemporaryDirectory() as temporary:
            yield pathlib.Path(temporary)
        return
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


def compile_into(prefix: pathlib.Path, torch: dict[str, str | None], settings: dict) -> str:
    """Installs program and libraries in `prefix`, and returns what they are for."""
    cuda, why = chooses_cuda(torch, settings.get("cuda", "auto"))
    device = "CUDA" if cuda else "CPU"
    say(f"building for torch {torch['version']} of {torch['folder']}, {device} ({why})")
    kind = f"cuda{torch['cuda']}" if cuda else "cpu"  # CMake keeps which nvcc it found, and for which GPUs
    with build_folder(f"wheel-torch-{torch['version']}-{kind}") as folder:
        run("cmake", "-S", str(ROOT), "-B", str(folder), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
            "-DHETSEQ_BUILD_TESTS=OFF", "-DHETSEQ_INSTALL_LIBTORCH=OFF", "-DHETSEQ_PYTHON_WHEEL=ON",
            f"-DHETSEQ_LIBTORCH_DIR={torch['folder']}", f"-DHETSEQ_USE_CUDA={'ON' if cuda else 'OFF'}",
            *shlex.split(os.environ.get("CMAKE_ARGS", "")))
        run("cmake", "--build", str(folder), "--parallel", str(compilers_at_once()))
        run("cmake", "--install", str(folder), "--prefix", str(prefix))
    return f"torch {torch['version']}, {device}"


def metadata(built_for: str = "") -> str:
    summary = "Data-parallel training on unlike GPUs" + (f" (built for {built_for})" if built_for else "")
    return (f"Metadata-Version: 2.1\nName: hetseq\nVersion: {version()}\nSummary: {summary}\n"
            "Requires-Python: >=3.10\nProvides-Extra: shards\nRequires-Dist: h5py; extra == 'shards'\n")


class Wheel:
    """A wheel that is being written; closing it adds the list of its files."""

    def __init__(self, folder: str):
        self.tag = f"py3-none-linux_{platform.machine()}"
        self.path = pathlib.Path(folder) / f"hetseq-{version()}-{self.tag}.whl"
        self.info = f"hetseq-{version()}.dist-info"
        self.archive = zipfile.ZipFile(self.path, "w", zipfile.ZIP_DEFLATED)
        self.record: list[str] = []

    def add(self, name: str, content: bytes, mode: int = 0o644) -> None:
        entry = zipfile.ZipInfo(name)
        entry.external_attr = (0o100000 | mode) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        self.archive.writestr(entry, content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        self.record.append(f"{name},sha256={digest},{len(content)}\n")

    def add_folder(self, name: str, folder: pathlib.Path) -> None:
        """Its files. A wheel holds no links: of a library's names, the one that the loader asks for is taken."""
        for file in sorted(folder.rglob("*")):
            if file.is_dir() or "__pycache__" in file.parts or re.search(r"\.so(\.\d+){3}$", file.name):
                continue
            self.add(f"{name}/{file.relative_to(folder)}", file.read_bytes(), file.stat().st_mode & 0o777)

    def close(self, built_for: str) -> None:
        self.add(f"{self.info}/METADATA", metadata(built_for).encode())
        self.add(f"{self.info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: hetseq\nRoot-Is-Purelib: false\n"
                                       f"Tag: {self.tag}\n".encode())
        self.record.append(f"{self.info}/RECORD,,\n")
        self.archive.writestr(f"{self.info}/RECORD", "".join(self.record))
        self.archive.close()


def get_requires_for_build_wheel(config_settings=None) -> list[str]:
    find_torch()  # its absence is said before anything is downloaded
    needed = [] if has_cmake() else [f"cmake>={'.'.join(map(str, OLDEST_CMAKE))}"]
    return needed + ([] if shutil.which("ninja") else ["ninja"])


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None) -> str:
    torch = find_torch()
    wheel = Wheel(wheel_directory)
    with tempfile.TemporaryDirectory() as prefix:
        built_for = compile_into(pathlib.Path(prefix), torch, config_settings or {})
        wheel.add_folder("hetseq", HERE / "hetseq")
        wheel.add_folder("hetseq", pathlib.Path(prefix))
    wheel.add(f"hetseq-{version()}.data/scripts/hetseq", SCRIPT.encode(), 0o755)
    wheel.close(built_for)
    return wheel.path.name


def build_editable(wheel_directory, config_settings=None, metadata_directory=None) -> str:
    stop("an editable installation is not supported, since the library is compiled: "
         f"build with CMake and set PYTHONPATH={HERE}, or leave -e out")


def build_sdist(sdist_directory, config_settings=None) -> str:
    stop("there is no source distribution of the Python package alone: use the repository (pip install ./python)")
