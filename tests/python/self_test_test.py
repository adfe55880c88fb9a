"""What makes a result depend on the cut is named (python/hetseq/self_test.py)."""

import random
import unittest

from harness import need

need("torch")

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from hetseq import randomness, self_test


class Classifier(nn.Module):
    def __init__(self, *layers, reduction="sum"):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 8), *layers, nn.Dropout(0.3))
        self.head = nn.Linear(8, 4)
        self.reduction = reduction

    def forward(self, rows):
        logits = self.head(self.layers(rows["x"].float()))
        loss = F.cross_entropy(logits, rows["y"], reduction=self.reduction)
        return {"nll": loss}


class SelfTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)
        self.rows = {"x": torch.randn(7, 6), "y": torch.randint(4, (7,))}

    def problems(self, model, forward=None, rows=None):
        model.train()
        self.doCleanups()
        handle = randomness.install(model)
        self.addCleanup(handle.remove)
        run = self_test.keyed_run(handle, forward or model)
        return self_test.check(run, model, rows or self.rows)

    def one(self, found, *patterns):
        self.assertEqual(len(found), 1, found)
        for pattern in patterns:
            self.assertRegex(found[0], pattern)

    def test_a_sound_model_passes_with_dropout_on(self):
        self.assertEqual(self.problems(Classifier(nn.LayerNorm(8), nn.GELU())), [])

    def test_checkpointing_passes(self):
        for reentrant in (True, False):

            class Checkpointed(Classifier):
                def forward(self, rows, reentrant=reentrant):
                    x = rows["x"].float().requires_grad_()
                    x = checkpoint(self.layers, x, use_reentrant=reentrant)
                    return {"nll": F.cross_entropy(self.head(x), rows["y"], reduction="sum")}

            self.assertEqual(self.problems(Checkpointed()), [])

    def test_what_runs_in_fp32_only_passes_too(self):
        class Single(Classifier):
            def forward(self, rows):
                if self.head.weight.dtype != torch.float32:
                    raise TypeError("fp32 only")
                return super().forward(rows)

        self.assertEqual(self.problems(Single()), [])

    def test_batch_normalisation_is_named(self):
        found = self.problems(Classifier(nn.BatchNorm1d(8)))
        self.assertRegex(found[0], r"layers\.1 \(BatchNorm1d\): batch normalisation")
        self.assertRegex(found[1], r"buffers layers\.1\.running_mean.*changed")

    def test_a_forward_that_needs_many_samples_is_named(self):
        class Pairs(nn.Module):
            def forward(self, x):
                if len(x) < 2:
                    raise ValueError("two samples at least")
                return x

        self.one(self.problems(Classifier(Pairs())), "fails on fewer samples .*two samples at least")

    def test_frozen_batch_normalisation_passes(self):
        model = Classifier(nn.BatchNorm1d(8)).train()
        model.layers[1].eval()
        handle = randomness.install(model)
        self.addCleanup(handle.remove)
        run = self_test.keyed_run(handle, model)
        self.assertEqual(self_test.check(run, model, self.rows), [])

    def test_a_compiled_module_is_checked_without_compiling(self):
        from torch._dynamo.testing import CompileCounter

        model = Classifier(nn.GELU())
        counter = CompileCounter()
        model.compile(backend=counter)
        self.assertEqual(self.problems(model), [])
        self.assertEqual(counter.frame_count, 0)

    def test_a_mean_is_recognised(self):
        self.one(self.problems(Classifier(reduction="mean")), "'nll' is a mean", 'reduction="sum"')

    def test_own_randomness_is_named(self):
        class Noisy(Classifier):
            def forward(self, rows):
                return super().forward({**rows, "x": rows["x"] * random.random()})

        self.one(self.problems(Noisy()), "generator of random")

        class Drawing(nn.Module):
            def forward(self, x):
                return x + torch.randn_like(x)

        self.one(self.problems(Classifier(Drawing())), r"randn_like in layers\.1 \(Drawing\)")

    def test_a_state_of_its_own_is_named(self):
        calls = []

        class Counting(Classifier):
            def forward(self, rows):
                calls.append(0)
                return {"nll": super().forward(rows)["nll"] * len(calls)}

        self.one(self.problems(Counting()), "two runs of the same samples")

    def test_time_in_dimension_0_is_named(self):
        layer = nn.TransformerEncoderLayer(6, 2, 8, dropout=0.1)

        def forward(rows):
            return {"nll": layer(rows["x"].transpose(0, 1)).sum()}

        found = self.problems(layer, forward, {"x": torch.randn(7, 5, 6)})
        self.one(found, r"dropout1 \(Dropout\)", r"\(5, 7, 6\)", "batch_first")

    def test_a_module_that_mixes_samples_is_found(self):
        class Centred(nn.Module):
            def forward(self, x):
                return x - x.mean(0)

        self.one(self.problems(Classifier(nn.ReLU(), Centred())), r"layers\.2 \(Centred\)")

    def test_what_the_forward_does_itself_is_found(self):
        model = Classifier()

        def forward(rows):
            return {"nll": model(rows)["nll"] * len(rows["x"])}

        self.one(self.problems(model, forward), "no module's output does")

    def test_buffers_that_change_are_named(self):
        class Counter(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("seen", torch.zeros(()))

            def forward(self, x):
                self.seen += len(x)
                return x

        self.one(self.problems(Classifier(Counter())), r"buffer layers\.1\.seen changed")

    def test_everything_is_as_before(self):
        class Replacing(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("centre", torch.ones(8))

            def forward(self, x):
                self.centre = self.centre * 0.9
                return x

        model = Classifier(Replacing(), nn.BatchNorm1d(8))
        tensors = [*model.parameters(), *model.buffers()]
        before = [(t, t.data_ptr(), t.dtype, t.detach().clone()) for t in tensors]
        model.head.weight.grad = torch.ones_like(model.head.weight)
        state = torch.get_rng_state()
        self.problems(model)
        after = [*model.parameters(), *model.buffers()]
        for (tensor, place, dtype, value), now in zip(before, after):
            self.assertIs(tensor, now)
            self.assertEqual((place, dtype), (now.data_ptr(), now.dtype))
            self.assertTrue(torch.equal(value, now))
        self.assertTrue(torch.equal(model.head.weight.grad, torch.ones_like(model.head.weight)))
        self.assertIsNone(model.head.bias.grad)
        self.assertTrue(torch.equal(state, torch.get_rng_state()))

    def test_a_count_unlike_any_size_is_chosen(self):
        model = nn.MultiheadAttention(35, 7)
        rows = {"x": torch.zeros(100, 5, 35)}
        self.assertEqual(self_test.choose_count(model, rows, 100), 11)
        self.assertEqual(self_test.choose_count(model, rows, 4), 3)


if __name__ == "__main__":
    unittest.main()
