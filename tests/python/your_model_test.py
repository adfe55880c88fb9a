"""docs/your-model.md: each mistake that it shows gets the message that it shows, and what mends it gets none."""

import random
import re
import sys
import unittest

from harness import ROOT, need

need("torch")

import torch
from torch import nn
from torch.nn import functional as F

from hetseq import randomness, self_test
from hetseq.samples import Samples

PAGE = ROOT / "docs/your-model.md"
LENGTHS = (3, 7, 2, 5, 7, 4, 6)


def plain_text(text):
    """Without line ends and the marks of quotations, and sums by their places alone: another torch draws others."""
    return re.sub(r"\d+\.\d+", "0.0", " ".join(re.sub(r"(?m)^> ", "", text).split()))


class Network(nn.Module):
    """Scores of rows "x", or of texts "ids"; `step` is what a mistake or its mending does between."""

    def __init__(self, step, part=None, reduction="sum"):
        super().__init__()
        self.words, self.first, self.last = nn.Embedding(20, 8), nn.Linear(6, 8), nn.Linear(8, 4)
        self.step, self.reduction, self.part = step, reduction, part

    def forward(self, rows):
        x = self.words(rows["ids"]) if "ids" in rows else self.first(rows["x"].to(self.first.weight.dtype))
        scores = self.last(self.step(self.part, x, rows))
        return {"nll": F.cross_entropy(scores, rows["y"], reduction=self.reduction)}


class Seen(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x):
        self.seen += len(x)
        return x


def mask_of(rows):
    return torch.arange(rows["ids"].shape[1]) < rows["ids_lengths"][:, None]


def masked_mean(part, x, rows):
    mask = mask_of(rows)[..., None]
    return (x * mask).sum(1) / mask.sum(1)


def plain(part, x, rows):
    return x


def own_part(part, x, rows):
    return part(x)


def permuted(part, x, rows):
    return x + 0.1 * x[torch.randperm(len(x))]


torch.manual_seed(1)
TEXTS = {"padding": (Network(lambda part, x, rows: x.mean(1)), Network(masked_mean))}
NUMBERS = {
    "mean": (Network(plain, reduction="mean"), Network(plain)),
    "others": (Network(lambda part, x, rows: x - x.mean(0)), Network(own_part, nn.LayerNorm(8))),
    "random": (Network(lambda part, x, rows: x * random.random()), Network(lambda part, x, rows: x * torch.rand(len(x), 1))),
    "permutation": (Network(permuted), None),
    "norm": (Network(lambda part, x, rows: F.batch_norm(x, None, None, training=True)), Network(own_part, nn.BatchNorm1d(8))),
    "buffer": (Network(own_part, Seen()), None),
}


class YourModelTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)
        draw = torch.Generator().manual_seed(2)
        self.numbers = {"x": torch.randn(7, 6, generator=draw), "y": torch.randint(4, (7,), generator=draw)}
        texts = [torch.randint(1, 20, (length,), generator=draw) for length in LENGTHS]
        self.texts = Samples({"ids": nn.utils.rnn.pad_sequence(texts, batch_first=True), "y": self.numbers["y"],
                              "ids_lengths": torch.tensor(LENGTHS)}, {"ids": 0})
        self.page = plain_text(PAGE.read_text())

    def check(self, model, samples, forward=None, **more):
        handle = randomness.install(model.train())
        try:
            if "evaluate" in more:
                more["evaluate"] = self_test.keyed_run(handle, more["evaluate"], training=False)
            group = 2 if handle.norms.exists else 1
            return self_test.check(self_test.keyed_run(handle, forward or model), model, samples, group=group, **more)
        finally:
            handle.remove()

    def assert_shown(self, name, found):
        self.assertEqual(len(found), 1, (name, found))
        if "--print" in sys.argv:
            print(f"{name}: {found[0]}\n")
        else:
            self.assertTrue(plain_text(found[0]) in self.page, f"{name}: the page lacks '{found[0]}'")

    def test_each_mistake_gets_the_message_of_the_page(self):
        for cases, samples in ((NUMBERS, self.numbers), (TEXTS, self.texts)):
            for name, (mistake, mended) in cases.items():
                with self.subTest(name):
                    self.assert_shown(name, self.check(mistake, samples))
                    if mended:
                        self.assertEqual(self.check(mended, samples), [])

    def test_weights_and_metrics(self):
        model = Network(masked_mean)
        count = lambda what: lambda rows: {"nll": float(what(rows))}
        self.assert_shown("weights", self.check(model, self.texts, weigh=count(lambda rows: rows["ids"].numel())))
        self.assertEqual(self.check(model, self.texts, weigh=count(lambda rows: rows["ids_lengths"].sum())), [])
        longest = lambda rows: {**model(rows), "longest": rows["ids_lengths"].max()}
        self.assert_shown("metric", self.check(model, self.texts, evaluate=longest))


if __name__ == "__main__":
    unittest.main(argv=[word for word in sys.argv if word != "--print"])
