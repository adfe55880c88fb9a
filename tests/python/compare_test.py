"""The PyTorch programs that hetseq is measured beside (jobs/compare)."""

import json
import os
import re
import unittest
from unittest import mock

from harness import ROOT, Case, need

need("torch", "numpy", "h5py")

import h5py
import numpy as np

FOLDER = ROOT / "jobs" / "compare"


class MnistTest(Case):
    def setUp(self):
        super().setUp()
        draw = np.random.default_rng(3)
        with h5py.File(self.folder / "train.h5", "w") as file:
            file["images"] = draw.integers(0, 256, (40, 28, 28), dtype=np.uint8)
            file["labels"] = draw.integers(0, 10, 40)

    def mnist(self, ranks, *words, code=0):
        return self.run_ranks(ranks, FOLDER / "mnist_ddp.py", "train.h5", "--batch", 4, "--updates", 5, *words, code=code)

    def test_it_trains_on_cpus(self):
        for words in ((), ("--tuned",)):
            result = json.loads(re.search(r"^\{.*\}$", self.mnist(2, *words), re.M).group())

            self.assertEqual((result["ranks"], result["tuned"]), (2, words != ()))
            self.assertIn("DDP over gloo", result["program"])
            self.assertGreater(result["samples_per_second"]["median"], 0)

    def test_a_rank_without_a_gpu_says_so(self):
        with mock.patch.dict(os.environ, CUDA_VISIBLE_DEVICES=""):
            self.assertIn("no GPU for local rank 0: torch", self.mnist(1, "--device", "cuda", code=71))

    def test_updates_that_are_timed_together_are_waited_for_once(self):
        self.write("timed.py", f"""
            import sys
            sys.path.insert(0, {str(FOLDER)!r})
            import ddp
            ddp.start_ranks()
            calls = []
            measured = ddp.rates([(i, 3) for i in range(25)], calls.append, 5, lambda: calls.append("wait"))
            assert calls == [x for i in range(0, 25, 5) for x in (*range(i, i + 5), "wait")], calls
            assert len(measured) == 4 and min(measured) > 0, measured  # the first fifth is left out
            """)
        self.run_ranks(1, "timed.py")


if __name__ == "__main__":
    unittest.main(verbosity=2)
