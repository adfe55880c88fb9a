#!/usr/bin/env python3
"""python/build_backend.py without compiling: what it finds, what it chooses, what it asks for, and what a wheel holds.

tests/python/install_test.sh installs the package with pip."""
import base64
import contextlib
import csv
import hashlib
import io
import os
import pathlib
import re
import stat
import sys
import tempfile
import unittest
import unittest.mock
import zipfile

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
import build_backend  # noqa: E402

TORCH = {"version": "2.11.0", "folder": "/opt/torch", "cuda": "13.0"}


class BuildBackendTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.bin = self.folder / "bin"
        self.bin.mkdir()

    def plays(self, program, script):
        path = self.bin / program
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return str(path)

    def environment(self, **variables):
        """Only these variables, and the played programs on PATH."""
        return unittest.mock.patch.dict(os.environ, {"PATH": str(self.bin), **variables}, clear=True)

    def message(self, call):
        with self.assertRaises(SystemExit) as stopped:
            call()
        return str(stopped.exception)

    def test_torch_is_that_of_the_python_which_installs(self):
        python = self.plays("python", """echo 'a warning'; echo '{"version": "2.11.0", "folder": "/t", "cuda": null}'""")
        with self.environment(), unittest.mock.patch.object(sys, "executable", python):
            self.assertEqual(build_backend.find_torch(), {"version": "2.11.0", "folder": "/t", "cuda": None})

    def test_pips_isolation_is_left(self):
        python = self.plays("python", 'echo "{\\"path\\": \\"$PYTHONPATH\\", \\"user\\": \\"$PYTHONNOUSERSITE\\"}"')
        with unittest.mock.patch.object(sys, "executable", python):
            with self.environment(PYTHONPATH="/tmp/pip-build-env-x1/site", PYTHONNOUSERSITE="1"):
                self.assertEqual(build_backend.find_torch(), {"path": "", "user": ""})
            with self.environment(PYTHONPATH="/opt/site", PYTHONNOUSERSITE="1"):
                self.assertEqual(build_backend.find_torch(), {"path": "/opt/site", "user": "1"})

    def test_the_active_environment_is_asked_where_the_python_has_no_torch(self):
        python = self.plays("other", "echo 'ModuleNotFoundError: no torch' >&2; exit 1")
        self.plays("python", """echo '{"version": "2.11.0"}'""")
        with unittest.mock.patch.object(sys, "executable", python):
            with self.environment(VIRTUAL_ENV=str(self.folder)):
                self.assertEqual(build_backend.find_torch(), {"version": "2.11.0"})
            with self.environment():
                text = self.message(build_backend.find_torch)
        self.assertIn("other cannot import torch (ModuleNotFoundError: no torch)", text)
        self.assertIn("install torch first", text)

    def test_cuda_is_chosen_where_torch_and_nvcc_agree(self):
        nvcc = self.plays("nvcc", "echo 'Cuda compilation tools, release 13.1, V13.1.1'")
        choose = build_backend.chooses_cuda
        with self.environment():
            self.assertEqual(choose(TORCH, "auto"), (True, f"this torch has CUDA 13.0, and {nvcc} is of 13.1"))
            self.assertEqual(choose({**TORCH, "cuda": None}, "auto"), (False, "this torch has no CUDA"))
            self.assertEqual(choose({**TORCH, "cuda": "12.8"}, "auto"),
                             (False, f"{nvcc} is of CUDA 13.1, this torch of CUDA 12.8"))
            self.assertFalse(choose(TORCH, "off")[0])
            self.assertTrue(choose({**TORCH, "cuda": None}, "on")[0])
            self.assertIn("auto, on or off", self.message(lambda: choose(TORCH, "yes")))
        with unittest.mock.patch.object(build_backend, "find_nvcc", return_value=None):
            self.assertEqual(choose(TORCH, "auto"), (False, "no nvcc was found for this torch with CUDA 13.0"))

    def test_cmake_and_ninja_are_asked_for_where_they_are_absent_or_old(self):
        with unittest.mock.patch.object(build_backend, "find_torch", return_value=TORCH), self.environment():
            self.assertEqual(build_backend.get_requires_for_build_wheel(), ["cmake>=3.21", "ninja"])
            self.plays("cmake", "echo 'cmake version 3.18.4'")
            self.plays("ninja", "")
            self.assertEqual(build_backend.get_requires_for_build_wheel(), ["cmake>=3.21"])
            self.plays("cmake", "echo 'cmake version 4.0.1'")
            self.assertEqual(build_backend.get_requires_for_build_wheel(), [])

    def compiled(self, prefix, torch, settings):
        """What CMake installs, in place of compiling it."""
        for name, mode in ("bin/hetseq", 0o755), ("lib/libhetseq.so.0.2.0", 0o755), ("lib/libhetseq_python.so", 0o755):
            path = prefix / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(name.encode())
            path.chmod(mode)
        (prefix / "lib/libhetseq.so.0.2").symlink_to("libhetseq.so.0.2.0")
        return f"torch {torch['version']}, CPU"

    def test_a_wheel_holds_the_package_the_libraries_and_the_program(self):
        with (unittest.mock.patch.object(build_backend, "find_torch", return_value=TORCH),
              unittest.mock.patch.object(build_backend, "compile_into", self.compiled)):
            name = build_backend.build_wheel(str(self.folder))

        version = re.search(r"project\(hetseq VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
        self.assertRegex(name, rf"^hetseq-{version}-py3-none-linux_\w+\.whl$")
        with zipfile.ZipFile(self.folder / name) as wheel:
            names = set(wheel.namelist())
            for expected in ("hetseq/_library.py", "hetseq/py.typed", "hetseq/lib/libhetseq_python.so",
                             "hetseq/lib/libhetseq.so.0.2", f"hetseq-{version}.dist-info/WHEEL"):
                self.assertIn(expected, names)
            self.assertNotIn("hetseq/lib/libhetseq.so.0.2.0", names)
            self.assertFalse([name for name in names if "__pycache__" in name or "build_backend" in name])
            for program in "hetseq/bin/hetseq", f"hetseq-{version}.data/scripts/hetseq":
                self.assertTrue(wheel.getinfo(program).external_attr >> 16 & stat.S_IXUSR, program)
            text = wheel.read(f"hetseq-{version}.dist-info/METADATA").decode()
            self.assertIn("built for torch 2.11.0, CPU", text)
            self.assertNotRegex(text, r"Requires-Dist: torch")
            record = list(csv.reader(io.StringIO(wheel.read(f"hetseq-{version}.dist-info/RECORD").decode())))
            self.assertEqual({line[0] for line in record}, names)
            for path, digest, size in record[:-1]:
                content = wheel.read(path)
                expected = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
                self.assertEqual((digest, size), (f"sha256={expected}", str(len(content))))

    def test_what_is_not_supported_is_said(self):
        self.assertIn("PYTHONPATH", self.message(lambda: build_backend.build_editable("")))
        self.assertIn("use the repository", self.message(lambda: build_backend.build_sdist("")))

    def test_a_failing_build_stops(self):
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertIn("/bin/false failed", self.message(lambda: build_backend.run("/bin/false")))


if __name__ == "__main__":
    unittest.main()
