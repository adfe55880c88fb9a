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
from hetseq.samples import Samples


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


class Checked(unittest.TestCase):
    def check(self, model, samples, count=None, forward=None, **more):
        self.doCleanups()
        handle = randomness.install(model)
        self.addCleanup(handle.remove)
        if "evaluate" in more:
            more["evaluate"] = self_test.keyed_run(handle, more["evaluate"], training=False)
        return self_test.check(self_test.keyed_run(handle, forward or model), model, samples, count, **more)

    def one(self, found, *patterns):
        self.assertEqual(len(found), 1, found)
        for pattern in patterns:
            self.assertRegex(found[0], pattern)


class SelfTest(Checked):
    def setUp(self):
        torch.manual_seed(1)
        self.rows = {"x": torch.randn(7, 6), "y": torch.randint(4, (7,))}

    def problems(self, model, forward=None, rows=None):
        return self.check(model.train(), rows or self.rows, forward=forward)

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

    @unittest.skipUnless(hasattr(F, "grouped_mm"), "this torch has no grouped_mm")
    def test_products_of_groups_are_compared_in_fp64(self):
        """As experts of transformers have them, whose operator knows no fp64: little of a cut shows in fp32."""
        class Experts(nn.Module):
            def __init__(self, balance):
                super().__init__()
                self.router, self.experts, self.balance = nn.Linear(6, 3), nn.Parameter(torch.randn(3, 6, 4)), balance

            def forward(self, rows):
                chances = self.router(rows["x"]).softmax(-1)
                expert = chances.argmax(-1)
                order = expert.argsort(stable=True)
                offs = torch.bincount(expert, minlength=3).cumsum(0).to(torch.int32)
                made = F.grouped_mm(rows["x"][order], self.experts, offs=offs)
                logits = torch.zeros_like(made).index_copy(0, order, made) * chances.max(-1).values[:, None]
                loss = F.cross_entropy(logits, rows["y"], reduction="sum")
                return {"nll": loss + self.balance * len(expert) * (chances.mean(0) * offs.diff(prepend=offs[:1] * 0)).sum()}

        self.assertEqual(self.problems(Experts(0)), [])
        self.one(self.problems(Experts(1e-5)), "depend on how a micro-batch is cut")

    def test_a_task_that_is_not_exact_is_not_compared_but_else_checked(self):
        class Negatives(Classifier):
            def forward(self, rows):
                x = F.normalize(self.layers(rows["x"].to(self.head.weight.dtype)))
                return {"nll": F.cross_entropy(x @ x.T, torch.arange(len(x)), reduction=self.reduction)}

        self.one(self.problems(Negatives()), "depend on how a micro-batch is cut")
        self.assertEqual(self.check(Negatives().train(), self.rows, exact=False), [])
        self.one(self.check(Classifier(reduction="mean").train(), self.rows, exact=False), "is a mean over the samples")
        model = Classifier().train()
        self.one(self.check(model, self.rows, forward=lambda rows: {"nll": model(rows)["nll"] / 0}, exact=False),
                 "the loss 'nll' is inf")

    def test_what_runs_in_fp32_only_passes_too(self):
        class Single(Classifier):
            def forward(self, rows):
                if self.head.weight.dtype != torch.float32:
                    raise TypeError("fp32 only")
                return super().forward(rows)

        self.assertEqual(self.problems(Single()), [])

    def test_a_forward_that_writes_parameters_is_named(self):
        class Rescaled(nn.Module):
            def __init__(self, max_norm):
                super().__init__()
                self.table, self.head = nn.Embedding(9, 8, max_norm=max_norm), nn.Linear(8, 4)

            def forward(self, rows):
                looked_up = self.table((rows["x"] * 2).long().clamp(0, 8)).sum(1)
                return {"nll": F.cross_entropy(self.head(looked_up), rows["y"], reduction="sum")}

        self.one(self.problems(Rescaled(0.5)), "itself writes the parameter table.weight", "max_norm")
        self.assertEqual(self.problems(Rescaled(None)), [])

    def test_batch_normalisation_is_compared_by_groups(self):
        self.assertEqual(self.check(Classifier(nn.BatchNorm1d(8)).train(), self.rows, group=2), [])

        class Lowered(nn.Module):
            def forward(self, x):
                return x - x.amax(0)

        mixing = Classifier(nn.BatchNorm1d(8), Lowered()).train()
        self.one(self.check(mixing, self.rows, group=2), r"layers\.2 \(Lowered\) for a sample depends on the other samples")

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
        self.assertEqual(self.check(model, self.rows), [])

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

        self.one(self.problems(Noisy()), r"^the model \(Noisy\) draws from the generator of random .*torch\.rand\(\(\)\)")

        class Drawing(nn.Module):
            def forward(self, x):
                return x + torch.randn_like(x)

        self.assertEqual(self.problems(Classifier(Drawing())), [])

    def test_draws_that_are_no_samples(self):
        """Codes of a codebook, whose number is a multiple of 7, 4 and 3 samples by chance."""

        class Codebook(nn.Module):
            def __init__(self, codes):
                super().__init__()
                self.codes = nn.Parameter(torch.randn(codes, 8))

            def forward(self, x):
                codes = self.codes + torch.randn(self.codes.shape)
                return x + codes[torch.cdist(x, codes).argmin(-1)]

        self.one(self.problems(Classifier(Codebook(84))), r"randn of layers\.1 \(Codebook\) drew 84 rows for 7 samples and for 1")
        self.one(self.problems(Classifier(Codebook(32))), r"randn of layers\.1 \(Codebook\).*\(32, 8\).*not the 7 samples")

    def test_a_state_of_its_own_is_named(self):
        calls = []

        class Counting(Classifier):
            def forward(self, rows):
                calls.append(0)
                return {"nll": super().forward(rows)["nll"] * len(calls)}

        self.one(self.problems(Counting()), "two runs of the same samples")

    def test_time_in_dimension_0_passes(self):
        """Of any length: unlike the number of samples, a multiple of it, or the number itself."""
        for time in (5, 7, 14):
            with self.subTest(time):
                layer = nn.TransformerEncoderLayer(6, 2, 8, dropout=0.1)

                def forward(rows):
                    x = rows["x"].transpose(0, 1)
                    x = layer(x + torch.randn_like(x)) * torch.bernoulli(torch.full(x.shape[:2], 0.5))[:, :, None]
                    return {"nll": (x * torch.arange(time)[:, None, None]).sum()}

                self.assertEqual(self.problems(layer, forward, {"x": torch.randn(7, time, 6)}), [])

    def test_a_table_whose_width_is_the_number_of_samples_is_named(self):
        class Codebook(nn.Module):
            def __init__(self):
                super().__init__()
                self.codes = nn.Parameter(torch.randn(5, 8))

            def forward(self, x):
                codes = torch.randn(5, 7) @ torch.ones(7, 8) + self.codes
                return x + codes[torch.cdist(x, codes).argmin(-1)]

        self.one(self.problems(Classifier(Codebook())), r"randn of layers\.1 \(Codebook\).*\(5, 7\).*not the 7 samples")

    def test_a_module_that_mixes_samples_is_found(self):
        class Lowered(nn.Module):
            def forward(self, x):
                return x - x.amax(0)

        self.one(self.problems(Classifier(nn.ReLU(), Lowered())), r"layers\.2 \(Lowered\)")

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


LENGTHS = [5, 2, 9, 4, 7, 3, 8, 6, 1]


def mask_of(rows):
    return torch.arange(rows["ids"].shape[1]) < rows["ids_lengths"][:, None]


class Reader(nn.Module):
    """Reads ragged rows; `read` makes (samples, 8) of the embedded rows."""

    def __init__(self, read, *parts):
        super().__init__()
        self.embedding = nn.Embedding(20, 8)
        self.parts = nn.ModuleList(parts)
        self.head = nn.Linear(8, 3)
        self.read = read

    def forward(self, rows):
        read = self.read(self.parts, self.embedding(rows["ids"]), mask_of(rows), rows["ids_lengths"])
        return {"nll": F.cross_entropy(self.head(read), rows["y"], reduction="sum")}


def mean(x, mask):
    return (x * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)


class Ragged(Checked):
    """Rows of unequal length, as other cuts pad them."""

    def setUp(self):
        torch.manual_seed(1)
        rows = [torch.randint(1, 20, (length,)) for length in LENGTHS]
        self.fields = {"ids": nn.utils.rnn.pad_sequence(rows, batch_first=True), "y": torch.randint(3, (len(rows),)),
                       "ids_lengths": torch.tensor(LENGTHS)}

    def problems(self, model, forward=None, rows=None, collate=None, **more):
        samples = Samples(self.fields if rows is None else rows, {"ids": 0}, collate)
        return self.check(model.train(), samples, 5, forward, **more)

    def refused(self, read, *parts, name):
        self.one(self.problems(Reader(read, *parts)), "depends on how far rows are padded", name, "padding mask")

    def test_what_respects_padding_passes(self):
        def attention(parts, x, mask, lengths):
            return mean(parts[0](x, src_key_padding_mask=~mask), mask)

        def packed(parts, x, mask, lengths):
            packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
            return parts[0](packed)[1][0].transpose(0, 1).flatten(1)

        def convolution(parts, x, mask, lengths):
            x = parts[0]((x * mask[:, :, None]).transpose(1, 2)).relu().transpose(1, 2)
            return (x.masked_fill(~mask[:, :, None], -1)).max(1).values

        def autocast(parts, x, mask, lengths):
            with torch.autocast("cpu", torch.bfloat16):
                return mean(parts[0](x, src_key_padding_mask=~mask), mask)

        def halved(parts, x, mask, lengths):
            return mean(parts[0](x.bfloat16().float()).to(torch.float16).float(), mask)

        layer = nn.TransformerEncoderLayer(8, 2, 12, dropout=0.0, batch_first=True)
        for read, part in ((attention, layer), (packed, nn.LSTM(8, 4, bidirectional=True, batch_first=True)),
                           (convolution, nn.Conv1d(8, 8, 3, padding=1)), (autocast, layer), (halved, nn.Linear(8, 8))):
            with self.subTest(read.__name__):
                self.assertEqual(self.problems(Reader(read, part)), [])

    def test_a_forgotten_padding_mask_is_told_as_such(self):
        layer = nn.TransformerEncoderLayer(8, 2, 12, dropout=0.0, batch_first=True)
        self.refused(lambda parts, x, mask, lengths: mean(parts[0](x), mask), layer,
                         name=r"parts\.0\.self_attn \(MultiheadAttention\)")
        self.refused(lambda parts, x, mask, lengths: x.mean(1), name=r"head \(Linear\)")
        self.refused(lambda parts, x, mask, lengths: mean(parts[0](x)[0], mask),
                         nn.LSTM(8, 4, bidirectional=True, batch_first=True), name=r"parts\.0 \(LSTM\)")

    def test_a_forgotten_mask_is_found_where_all_rows_have_one_length(self):
        alike = {"ids": torch.randint(1, 20, (6, 4)), "y": torch.randint(3, (6,)), "ids_lengths": torch.full((6,), 4)}
        model = Reader(lambda parts, x, mask, lengths: x.mean(1))
        self.one(self.problems(model, rows=alike), "depends on how far rows are padded", "5 more positions of padding")

    def test_a_model_may_have_no_more_positions_than_the_longest_row(self):
        def read(parts, x, mask, lengths):
            return mean(x + parts[0](torch.arange(x.shape[1])), mask)

        self.assertEqual(self.problems(Reader(read, nn.Embedding(9, 8))), [])

    def test_padding_on_the_left_is_found_by_dropout(self):
        def read(parts, x, mask, lengths):
            return mean(parts[0](x.flip(1)), mask.flip(1))

        self.refused(read, nn.Dropout(0.3), name=r"parts\.0 \(Dropout\)")

    def test_a_limit_on_the_number_of_samples_is_found(self):
        model = Reader(lambda parts, x, mask, lengths: mean(x, mask) * (torch.arange(len(x)) < 30)[:, None])
        self.one(self.problems(model), "40 samples give other sums than the same ones 5 by 5", "limit on the number")
        rows, flat = {"x": torch.randn(64, 6), "y": torch.randint(4, (64,))}, nn.Linear(6, 4)
        forward = lambda rows: {"nll": F.cross_entropy(flat(rows["x"][:40]), rows["y"][:40], reduction="sum")}
        self.one(self.check(flat, rows, 7, forward), "64 samples give other sums than the same ones 7 by 7")

    def test_what_is_not_finite_is_named(self):
        def logarithm(parts, x, mask, lengths):
            return (mean(x, mask).T * (lengths - 2).log()).T

        self.one(self.problems(Reader(logarithm)), r"the loss 'nll' is nan on the first samples \(1 of 5 by themselves\)")
        root = Reader(lambda parts, x, mask, lengths: mean(x, mask) + (0 * mean(x, mask)).sqrt())
        self.one(self.problems(root), "gradient of parameter embedding.weight is not finite")

    def test_metrics_are_sums_and_made_by_what_evaluates_alike(self):
        model = Reader(lambda parts, x, mask, lengths: mean(x, mask))

        def evaluate(metric):
            return lambda rows: {**model(rows), "metric": metric(rows).sum()}

        def check(metric, *patterns):
            found = self.problems(model, evaluate=evaluate(metric))
            self.one(found, *patterns) if patterns else self.assertEqual(found, [])

        check(lambda rows: rows["ids_lengths"].float())
        check(lambda rows: rows["ids_lengths"].float().mean(), "the metric 'metric' is a mean over the samples")
        check(lambda rows: rows["ids_lengths"].float().mean() ** 2, "the metric 'metric' is no sum over the samples", "AUC")
        check(lambda rows: (rows["ids"] == 0), "in evaluation depends on how far rows are padded", "'metric'")
        check(lambda rows: torch.tensor(random.random()), "in evaluation draws from the generator of random", "draw nothing there")
        check(lambda rows: torch.rand(rows["ids_lengths"].shape))
        check(lambda rows: rows["y"] / rows["ids_lengths"].mul(0), "metric 'metric' is nan|metric 'metric' is inf")

    def test_ties_of_the_largest_score_are_no_fault(self):
        model = Reader(lambda parts, x, mask, lengths: mean(x, mask))
        model.embedding.weight.data[:] = 1 / 3

        def evaluate(rows):
            x = mean(model.embedding(rows["ids"]), mask_of(rows))
            return {**model(rows), "metric": (x.sum(1) * len(x) - len(x) * 8 / 3 > 0).sum()}  # by rounding

        self.assertEqual(self.problems(model, evaluate=evaluate), [])

    def test_weights_count_no_padding(self):
        model = Reader(lambda parts, x, mask, lengths: mean(x, mask))
        self.assertEqual(self.problems(model, weigh=lambda rows: {"nll": float(rows["ids_lengths"].sum())}), [])
        self.one(self.problems(model, weigh=lambda rows: {"nll": float(rows["ids"].numel())}),
                 r"weights gives 45 for 'nll' of 5 samples, and 25 summed", "without its padding")

    def test_randomness_in_collate_is_refused(self):
        import numpy as np

        model = Reader(lambda parts, x, mask, lengths: mean(x, mask))
        draw, plain, generator = np.random.default_rng(1), random.Random(1), torch.Generator().manual_seed(1)

        def collate(noise):
            return lambda batch: {**batch, "ids": (batch["ids"] + noise(len(batch["ids"]))[:, None]) % 20}

        for noise in (lambda n: torch.from_numpy(draw.integers(0, 20, n)), lambda n: torch.randint(20, (n,)),
                      lambda n: torch.tensor([plain.randrange(20) for _ in range(n)]),
                      lambda n: torch.randint(20, (n,), generator=generator)):
            self.one(self.problems(model, collate=collate(noise)), "collate gives another 'ids' when it is called again",
                     "draw in forward")
        seeded = lambda n: torch.from_numpy(np.random.default_rng(1).integers(0, 20, n))
        self.one(self.problems(model, collate=collate(seeded)), "collate gives another 'ids' for the same samples in another "
                 "order")
        self.assertEqual(self.problems(model, collate=collate(lambda n: torch.ones(n, dtype=torch.int64))), [])

    def test_a_collate_that_trims_passes_and_one_that_centres_is_refused(self):
        model = Reader(lambda parts, x, mask, lengths: mean(x, mask))
        fields = dict(self.fields, ids=F.pad(self.fields["ids"], (0, 6)))

        def trim(batch):
            return {**batch, "ids": batch["ids"][:, :batch["ids_lengths"].max()]}

        def centre(batch):
            return {**trim(batch), "centred": batch["y"] - batch["y"].float().mean()}

        def forward(rows):
            return {"nll": model(rows)["nll"] + (rows["centred"] * rows["y"]).sum()}

        self.assertEqual(self.problems(model, rows=fields, collate=trim), [])
        self.assertEqual(self.problems(model, rows=fields, collate=centre), [])  # what is not used does no harm
        self.one(self.problems(model, forward, rows=fields, collate=centre), "'centred' for the same samples without some",
                 "make each row of its sample alone")


if __name__ == "__main__":
    unittest.main()
