"""hetseq new: the tasks that it writes train, are evaluated and predict as they are."""

import os
import subprocess
import unittest

from harness import Case, environment, need

need("torch", "numpy", "h5py", "safetensors")

KINDS = {"classification": ("class", (256,)), "language-model": ("log_probability", (256,))}


class NewTest(Case):
    def setUp(self):
        super().setUp()
        before = os.environ.get("XDG_CACHE_HOME")
        self.addCleanup(lambda: os.environ.pop("XDG_CACHE_HOME") if before is None else os.environ.update(XDG_CACHE_HOME=before))
        os.environ["XDG_CACHE_HOME"] = str(self.folder / "cache")

    def new(self, *words, code=0):
        run = subprocess.run([os.environ["HETSEQ_PROGRAM"], "new", *words], cwd=self.folder, env=environment(),
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
        self.assertEqual(run.returncode, code, run.stdout)
        return run.stdout

    def test_each_kind_trains_is_evaluated_and_predicts(self):
        import h5py
        for kind, (name, shape) in KINDS.items():
            self.cold = kind == "classification"  # that is how a user's process begins
            with self.subTest(kind=kind):
                self.new(f"{kind}.py", "--kind", kind)
                self.assertIn(f"hetseq train {kind}.py --valid-data valid", (self.folder / f"{kind}.py").read_text())
                self.hetseq(1, "train", f"{kind}.py", "--valid-data", "valid", "--save-dir", kind, "--max-update", "2")
                self.assertIn("accuracy", self.hetseq(1, "evaluate", kind, "--data", "test"))
                self.hetseq(1, "predict", kind, "--data", "test", "--output", f"{kind}.h5")
                with h5py.File(self.folder / f"{kind}.h5") as file:
                    self.assertEqual(file[name].shape, shape)

    def test_python_writes_the_same_file(self):
        self.new("one.py")
        self.hetseq(1, "new", "other.py")
        one, other = ((self.folder / name).read_text() for name in ("one.py", "other.py"))
        self.assertEqual(one.replace("one.py", "other.py"), other)

    def test_it_writes_over_no_file(self):
        self.write("there.py", "x = 1\n")
        self.assertIn("there.py is there already", self.new("there.py", code=78))
        self.assertEqual((self.folder / "there.py").read_text(), "x = 1\n")
        self.assertIn("is no name for a task's file", self.new("task.txt", code=78))
        self.assertIn("/nowhere", self.new("/nowhere/task.py", code=74))


if __name__ == "__main__":
    unittest.main()
