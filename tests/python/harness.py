"""What the tests of the Python package share: small data, runs on ranks, comparison of models."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap
import unittest

import warm_python

SKIPPED = 77
ROOT = pathlib.Path(__file__).resolve().parents[2]


# The beginning of a script of tasks: five numbers x to one number y.
LINEAR = """
    import torch, hetseq

    class Linear(hetseq.Task):
        fields = {"x": hetseq.Field(torch.float64, (5,)), "y": hetseq.Field(torch.float64)}
        losses = ["squares"]
        def model(self, config):
            return torch.nn.Linear(5, 1)
        def forward(self, model, batch):
            return (model(batch["x"].to(model.weight.dtype)).squeeze(1) - batch["y"]).square().sum()
"""


_WHOLE = {"transformers": "transformers.models.gpt2.modeling_gpt2"}  # what models need, which it imports with the first


def need(*modules, how="jobs/setup.sh --python installs it"):
    """Imports modules, for the processes of `run_ranks` too. Ends the script as skipped where one cannot be imported. Call it
    first: processes begin with what was imported until then. torch imports its `_dynamo` when something is compiled,
    checkpointed or optimized in Python: two seconds of each process of a test that does so and does not name it here.
    hetseq is imported too: that is a third of what a short run computes."""
    for module in modules:
        try:
            __import__(_WHOLE.get(module, module))
        except ImportError as error:
            print(f"SKIPPED: {module} cannot be imported ({error}); {how}")
            sys.exit(SKIPPED)
    if "torch" in sys.modules:
        __import__("hetseq")
        if "numpy" in sys.modules:
            __import__("numpy.random")
        warm_python.start()


def environment():
    variables = dict(os.environ, OMP_NUM_THREADS="1", OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                     OMPI_MCA_rmaps_base_oversubscribe="1", PRTE_MCA_rmaps_default_mapping_policy=":oversubscribe",
                     OMPI_MCA_hwloc_base_binding_policy="none", HETSEQ_PYTHON=sys.executable)
    paths = [str(ROOT / "python"), *filter(None, [variables.get("PYTHONPATH")])]
    return dict(variables, PYTHONPATH=":".join(paths))


class Case(unittest.TestCase):
    """A folder of its own for each test, and runs in it."""

    maxDiff = None
    cold = False  # whether processes are made by Python itself

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(textwrap.dedent(text))
        return path

    def run_ranks(self, ranks, *words, code=0, seconds=240):
        """`python WORDS` on so many ranks; what it printed. Fails unless it ends with `code`."""
        launcher = ["mpirun", "-np", str(ranks)] if ranks > 1 else []
        python = [sys.executable] if self.cold else warm_python.command()
        run = subprocess.run([*launcher, *python, *map(str, words)], cwd=self.folder, env=environment(),
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=seconds)
        self.assertEqual(run.returncode, code, run.stdout)
        return run.stdout

    def assert_near(self, name, most):
        """The models of runs NAME-1 and NAME-3 differ by less than `most`."""
        difference = largest_difference(*(self.folder / f"{name}-{ranks}/model.safetensors" for ranks in (1, 3)))
        print(f"{name}: largest difference {difference:.2g}")
        self.assertLess(difference, most)

    def hetseq(self, ranks, *words, code=0):
        return self.run_ranks(ranks, "-m", "hetseq", *words, code=code)


def capacities(*samples):
    """--max-sentences of ranks with these capacities."""
    return ",".join(f"{rank}={count}" for rank, count in enumerate(samples))


def tensors(path):
    from safetensors.torch import load_file
    return load_file(str(path))


def largest_difference(a, b):
    """Of two files of tensors, relative to max(1, |a|)."""
    a, b = tensors(a), tensors(b)
    assert a.keys() == b.keys(), (a.keys(), b.keys())
    return max(((a[name].double() - b[name].double()).abs() / a[name].double().abs().clamp(min=1)).max().item()
               for name in a)


def occurrences(text, pattern):
    return len(re.findall(pattern, text))
