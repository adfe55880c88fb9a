"""What users' code does besides: it changes its batch in place, has no loss in some micro-batches, draws from NumPy in the
model, looks at the arguments of its own forward, and draws in an evaluation."""

import inspect
import json
import threading
import unittest

from harness import Case, capacities, need

need("torch", "numpy", "h5py", "safetensors")

import torch
from torch import nn

import hetseq
from hetseq import randomness
from hetseq.double import default_type, double

SAMPLES = 60

TASKS = f"""
    import numpy
    import torch, hetseq
    from torch import nn
    from torch.nn import functional as F

    class Base(hetseq.Task):
        fields = {{"x": hetseq.Field(torch.float32, (6,)), "label": hetseq.Field(torch.int64, is_target=True)}}
        losses = ["nll"]
        defaults = {{"lr": 0.1, "optimizer": "sgd", "device": "cpu", "save-minutes": 0}}
        def dataset(self, config, split):
            draw = numpy.random.default_rng(4)
            return [{{"x": draw.random(6, "float32") + 3, "label": int(draw.integers(3))}} for _ in range({SAMPLES})]
        def model(self, config):
            return nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.1), nn.Linear(8, 3))
        def normalised(self, x):
            return (x - 3.5) / 0.3
        def forward(self, model, batch):
            return F.cross_entropy(model(self.normalised(batch["x"])), batch["label"], reduction="sum")

    class Plain(Base):
        metrics = [hetseq.Computed("agreement")]
        def predict(self, model, batch):
            return {{"class": model(self.normalised(batch["x"])).argmax(-1)}}
        def metric(self, predictions):
            return {{"agreement": float((predictions["class"] == predictions["label"]).double().mean())}}

    class InPlace(Plain):
        def normalised(self, x):
            return x.sub_(3.5).div_(0.3)

    class Sparse(Base):  # two thirds of the samples have no label
        defaults = dict(Base.defaults, precision="fp64")
        def weights(self, batch):
            return (batch["label"] == 1).sum()
        def forward(self, model, batch):
            keep = batch["label"] == 1
            if not keep.any():
                return torch.zeros((), device=keep.device)
            x = self.normalised(batch["x"][keep]).to(model[0].weight.dtype)
            return F.cross_entropy(model[2](model[0](x)), batch["label"][keep], reduction="sum")

    class Rare(Sparse):  # few samples have a label, and their loss depends on the cut
        def dataset(self, config, split):
            return [dict(sample, label=int(i % 12 == 0)) for i, sample in enumerate(super().dataset(config, split))]
        def forward(self, model, batch):
            loss = super().forward(model, batch)
            print("a loss" if loss.requires_grad else "no loss" if torch.is_grad_enabled() else "")
            return loss * len(batch["label"])

    class Half(Base):  # sums of its samples are beyond the type's range
        fields = dict(Base.fields, x=hetseq.Field(torch.float16, (400,)))
        def dataset(self, config, split):
            draw = numpy.random.default_rng(4)
            return [{{"x": (draw.random(400, "float32") * 3e4).astype("float16"), "label": int(draw.integers(3))}} for _ in range({SAMPLES})]
        def model(self, config):
            return nn.Linear(400, 3)
        def normalised(self, x):
            return x.float() / 3e4

    class Permuted(Base):
        class module(nn.Module):
            def __init__(self):
                super().__init__()
                self.order = numpy.random.permutation(6).tolist()
                self.layer = nn.Linear(6, 3)
            def forward(self, x):
                return self.layer(x[:, self.order])
        def model(self, config):
            return self.module()

    class TimeFirst(Base):  # what it draws, in evaluation too, has the samples in dimension 1
        def forward(self, model, batch):
            mean = batch["x"].unsqueeze(0).expand(4, -1, -1)
            sampled = mean + torch.randn_like(mean.contiguous())
            return F.cross_entropy(model(sampled.mean(0)), batch["label"], reduction="sum")
"""


class HabitsTest(Case):
    def setUp(self):
        super().setUp()
        self.write("tasks.py", TASKS)

    def train(self, task, *words, ranks=1):
        return self.hetseq(ranks, "train", f"tasks.py:{task}", "--batch-size", 20, "--max-update", 6, "--threads", 1,
                           "--balance", "equal", "--cache-dir", "cache", "--save-dir", f"{task}-{ranks}", *words)

    def summary(self, run):
        return json.loads((self.folder / run / "summary.json").read_text())

    def test_a_batch_that_is_changed_in_place(self):
        for task in ("Plain", "InPlace"):
            self.train(task, "--valid-data", "valid", "--max-sentences", 10)
        plain, changed = (self.summary(f"{task}-1")["valid"] for task in ("Plain", "InPlace"))
        self.assertEqual(plain["agreement"], changed["agreement"])
        self.assertAlmostEqual(plain["nll"], changed["nll"], delta=1e-5)

    def test_micro_batches_without_a_loss(self):
        self.train("Sparse", "--max-sentences", 20)
        self.train("Sparse", "--max-sentences", capacities(2, 1, 3), "--balance", "declared", ranks=3)
        self.assert_near("Sparse", 1e-12)

    def test_the_self_test_waits_for_samples_with_a_loss(self):
        text = self.hetseq(1, "train", "tasks.py:Rare", "--batch-size", 20, "--max-update", 6, "--max-sentences", 4, "--threads", 1,
                           "--balance", "equal", "--cache-dir", "cache", code=78)
        self.assertEqual(next(line for line in text.splitlines() if line in ("a loss", "no loss")), "no loss")
        self.assertIn("the result would depend on how a batch is cut", text)

    def test_samples_in_fp16(self):
        self.train("Half", "--max-sentences", 20)

    def test_a_model_that_draws_from_numpy_is_loaded_as_it_was_trained(self):
        self.train("Permuted", "--max-sentences", 20)
        self.write("load.py", """
            import numpy, hetseq, tasks
            orders = []
            for seed in (1, 2):
                numpy.random.seed(seed)
                orders.append(hetseq.load("Permuted-1").order)
                assert numpy.random.randint(10**6) == numpy.random.RandomState(seed).randint(10**6)
            assert orders[0] == orders[1], orders
        """)
        self.run_ranks(1, "load.py")

    def test_an_evaluation_that_draws_says_the_same_by_itself(self):
        self.train("TimeFirst", "--valid-data", "valid", "--max-sentences", 20)
        told = self.summary("TimeFirst-1")["valid"]["nll"]
        for sentences in (2, 8, 20):
            found = self.hetseq(1, "evaluate", "TimeFirst-1", "--checkpoint", "last", "--data", "valid", "--cache-dir", "cache",
                                "--max-sentences", sentences, "--json")
            self.assertAlmostEqual(json.loads(found[found.index("{"):])["nll"], told, delta=1e-5)


class Generating(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def generate(self, ids):
        return set(inspect.signature(self.forward).parameters)

    def forward(self, input_ids, attention_mask=None, position_ids=None):
        return self.layer(input_ids)


class ArgumentsTest(unittest.TestCase):
    def test_a_module_that_generates_sees_its_own(self):
        module = Generating()
        before = module.generate(None)
        handle = randomness.install(module, {})
        self.assertEqual(module.generate(None), before)
        module(torch.ones(1, 2), attention_mask=None)
        handle.remove()
        self.assertEqual(module.generate(None), before)


class DefaultTypeTest(unittest.TestCase):
    def test_another_thread_that_makes_batches_waits_for_the_own_one(self):
        seen = []

        def collate():
            with default_type:
                seen.append(torch.zeros(1).dtype)

        with double(nn.Linear(1, 1)):
            self.assertEqual(torch.zeros(1).dtype, torch.float64)
            thread = threading.Thread(target=collate)
            thread.start()
            thread.join(0.3)
            self.assertEqual(seen, [])
        thread.join()
        self.assertEqual(seen, [torch.float32])


if __name__ == "__main__":
    unittest.main(verbosity=2)
