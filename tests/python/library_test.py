"""hetseq._library: which library is taken, and which torch is refused for it."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

from hetseq import _library


class LibraryTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.library = pathlib.Path(folder.name) / _library.NAME
        self.library.touch()

    def built_for(self, torch, cuda=None):
        self.library.with_suffix(".json").write_text(json.dumps({"hetseq": "1.0", "torch": torch, "cuda": cuda}))

    def refusal(self, version, cuda):
        with self.assertRaises(ImportError) as refused:
            _library.check_torch(self.library, version, cuda)
        self.assertNotIn("\n", str(refused.exception))
        return str(refused.exception)

    def test_the_same_release_is_accepted(self):
        self.built_for("2.11.0")
        for version, cuda in ("2.11.0", None), ("2.11.0+cpu", None), ("2.11.0+cu130", "13.0"):
            _library.check_torch(self.library, version, cuda)
        self.built_for("2.11.0", cuda="13.0.88")
        _library.check_torch(self.library, "2.11.0+cu130", "13.0")

    def test_another_torch_is_refused_in_one_line(self):
        self.built_for("2.11.0")
        for version in "2.10.0", "2.11.1", "2.12.0+cpu":
            text = self.refusal(version, None)
            self.assertIn(f"hetseq was built for torch 2.11.0, and this is torch {version}: install torch 2.11.0", text)

    def test_a_library_for_cuda_needs_that_cuda(self):
        self.built_for("2.11.0", cuda="13.0.88")
        self.assertIn("CUDA 13.0.88, and this torch has no CUDA", self.refusal("2.11.0+cpu", None))
        self.assertIn("CUDA 13.0.88, and this torch has CUDA 12.8", self.refusal("2.11.0+cu128", "12.8"))

    def test_a_library_that_says_nothing_is_refused(self):
        self.assertIn("cannot be read", self.refusal("2.11.0", None))

    def test_the_environment_names_the_library(self):
        with unittest.mock.patch.dict(os.environ, {"HETSEQ_PYTHON_LIBRARY": str(self.library)}):
            self.assertEqual(_library.find_library(), self.library)
            self.library.unlink()
            with self.assertRaisesRegex(ImportError, "HETSEQ_PYTHON_LIBRARY names .* is no file"):
                _library.find_library()

    def test_scripted_modules_run_beside_it(self):
        """A flag of libsentencepiece once wrote over a lock in torch, whose scripted modules then hung."""
        code = "import torch, hetseq; print(torch.jit.script(torch.nn.GELU())(torch.ones(2, 3)).shape)"
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(run.stdout, "torch.Size([2, 3])\n", run.stderr)

    def test_a_program_without_the_library_ends_in_one_line(self):
        self.built_for("1.0.0")
        for code in "import hetseq", "import hetseq.shards":
            run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120,
                                 env={**os.environ, "HETSEQ_PYTHON_LIBRARY": str(self.library)})

            self.assertEqual(run.returncode, 1)
            self.assertRegex(run.stderr.splitlines()[-1], "^ImportError: hetseq was built for torch 1.0.0, and this is")


if __name__ == "__main__":
    unittest.main(verbosity=2)
