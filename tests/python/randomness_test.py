"""Randomness of users' modules is a function of the sample (python/hetseq/randomness.py)."""

import copy
import math
import shutil
import unittest
from unittest import mock

from harness import need

need("torch")

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from hetseq import randomness, rows

IDS = [3, 14, 15, 92, 65, 35, 1 << 40]  # 7 samples
CUTS = ([7], [3, 4], [1] * 7)


def weights_of(value):
    """Unlike factors, so that a sum sees where each element stands."""
    n = value.shape[0]
    return torch.arange(1, value[0].numel() + 1, dtype=value.dtype).view(1, *value.shape[1:]).expand(
        n, *value.shape[1:]
    )


def loss_of(output):
    return (torch.tanh(output) * weights_of(output)).sum()


class Run:
    """Sums of losses and gradients of a module over a cut."""

    def __init__(self, model, forward=None, seed=5, update=2):
        self.model = model
        self.forward = forward or model
        self.seed, self.update = seed, update

    def step(self, handle, x, ids):
        torch.ops.hetseq.enter_forward(self.seed, self.update, ids, True)
        loss = handle.forward(lambda: loss_of(self.forward(x)))
        loss.backward()
        torch.ops.hetseq.leave_step()
        return loss.item()

    def sums(self, handle, x, cut, ids=IDS):
        for p in self.model.parameters():
            p.grad = None
        ids = torch.tensor(ids)
        x = x.clone().requires_grad_()
        total = 0.0
        for part, part_ids in zip(x.split(cut), ids.split(cut)):
            total += self.step(handle, part, part_ids)
        grads = [p.grad.clone() for p in self.model.parameters() if p.grad is not None]
        return [torch.tensor(total, dtype=torch.float64), x.grad.clone(), *grads]


class Case(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)

    def installed(self, model):
        """In the place of the handle before: a process has one."""
        self.doCleanups()
        handle = randomness.install(model)
        self.addCleanup(handle.remove)
        return handle

    def same(self, a, b, tolerance=1e-12):
        self.assertEqual(len(a), len(b))
        for one, other in zip(a, b):
            scale = max(1.0, one.detach().abs().max().item())
            self.assertLessEqual((one - other).detach().abs().max().item(), tolerance * scale)

    def check_cuts(self, model, x, forward=None, draws=True):
        """Equal sums for all cuts; and the draws matter, where there are some."""
        model.double().train()
        handle = self.installed(model)
        run = Run(model, forward)
        whole = run.sums(handle, x, CUTS[0])
        for cut in CUTS[1:]:
            self.same(whole, run.sums(handle, x, list(cut)))
        if draws:
            run.update += 1
            other = run.sums(handle, x, CUTS[0])
            self.assertGreater(float((whole[0] - other[0]).abs()), 1e-6)
        return handle, run, whole


class DropPath(nn.Module):
    """Stochastic depth as timm writes it."""

    def __init__(self, p):
        super().__init__()
        self.p = p

    def forward(self, x):
        if not self.training:
            return x
        keep = 1 - self.p
        noise = x.new_empty((x.shape[0],) + (1,) * (x.ndim - 1)).bernoulli_(keep)
        noise.div_(keep)
        return x * noise


class HuggingFaceDropPath(nn.Module):
    """Stochastic depth as transformers writes it."""

    def forward(self, x):
        keep = 0.6
        shape = (x.shape[0],) + (1,) * (x.ndim - 1)
        noise = keep + torch.rand(shape, dtype=x.dtype, device=x.device)
        noise.floor_()
        return x.div(keep) * noise


class StochasticDepth(nn.Module):
    """Stochastic depth as torchvision writes it."""

    def forward(self, x):
        noise = torch.empty([x.shape[0]] + [1] * (x.ndim - 1), dtype=x.dtype, device=x.device)
        noise = noise.bernoulli_(0.5)
        noise.div_(0.5)
        return x * noise


class Functional(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.linear = nn.Linear(6, 6)
        self.function = function

    def forward(self, x):
        return self.function(self.linear(x))


class KindsTest(Case):
    def test_every_kind_of_dropout(self):
        kinds = {
            "Dropout": nn.Dropout(0.3),
            "Dropout in place": nn.Dropout(0.3, inplace=True),
            "AlphaDropout": nn.AlphaDropout(0.3),
            "FeatureAlphaDropout": nn.FeatureAlphaDropout(0.3),
            "Dropout1d": nn.Dropout1d(0.3),
            "timm": DropPath(0.4),
            "transformers": HuggingFaceDropPath(),
            "torchvision": StochasticDepth(),
            "functional": Functional(lambda x: F.dropout(x, 0.5)),
            "in place": Functional(lambda x: F.dropout(x * 1, 0.5, True, True)),
            "torch.dropout": Functional(lambda x: torch.dropout(x, 0.5, True)),
            "alpha_dropout": Functional(lambda x: F.alpha_dropout(x, 0.5, True)),
            "bernoulli": Functional(lambda x: x * torch.bernoulli(torch.full_like(x, 0.3))),
            "rand_like": Functional(lambda x: x * torch.rand_like(x)),
            "uniform_": Functional(lambda x: x * torch.empty_like(x).uniform_(-1, 1)),
        }
        x = torch.randn(7, 5, 6, dtype=torch.float64)
        for name, kind in kinds.items():
            with self.subTest(name):
                self.check_cuts(nn.Sequential(nn.Linear(6, 6), kind, nn.Linear(6, 2)), x)

    def test_dropout_of_whole_channels(self):
        for kind, dims in ((nn.Dropout2d, 2), (nn.Dropout3d, 3)):
            with self.subTest(kind.__name__):
                x = torch.randn(7, 4, *[3] * dims, dtype=torch.float64)
                self.check_cuts(nn.Sequential(kind(0.4)), x)

    def test_a_kept_element_is_scaled_and_the_share_is_right(self):
        model = nn.Dropout(0.25)
        handle = self.installed(model)
        ids = torch.arange(64)
        torch.ops.hetseq.enter_forward(1, 0, ids, True)
        out = handle.forward(model, torch.ones(64, 1000))
        self.assertEqual(set(out.unique().tolist()), {0.0, torch.tensor(1 / 0.75).item()})
        self.assertAlmostEqual((out == 0).double().mean().item(), 0.25, delta=0.01)

    def test_bernoulli_has_its_probability(self):
        handle = self.installed(nn.Identity())
        torch.ops.hetseq.enter_forward(1, 0, torch.arange(20000), True)
        out = handle.forward(lambda: torch.empty(20000, 1).bernoulli_(0.8))
        self.assertAlmostEqual(out.mean().item(), 0.8, delta=0.012)

    def test_bfloat16_on_the_cpu(self):
        model = nn.Dropout(0.5)
        handle = self.installed(model)
        torch.ops.hetseq.enter_forward(1, 0, torch.arange(7), True)
        out = handle.forward(model, torch.ones(7, 64, dtype=torch.bfloat16))
        self.assertEqual(out.dtype, torch.bfloat16)
        self.assertEqual(set(out.unique().tolist()), {0.0, 2.0})

    def test_evaluation_drops_nothing(self):
        model = nn.Sequential(nn.Dropout(0.5), DropPath(0.5)).eval()
        handle = self.installed(model)
        x = torch.randn(7, 6)
        torch.ops.hetseq.enter_forward(1, 0, torch.arange(7), False)
        self.assertTrue(torch.equal(handle.forward(model, x), x))


class Attention(nn.Module):
    def __init__(self, p, causal=False, mask=None):
        super().__init__()
        self.qkv = nn.Linear(8, 24)
        self.p, self.causal, self.mask = p, causal, mask

    def forward(self, x):
        n, length, _ = x.shape
        q, k, v = self.qkv(x).view(n, length, 3, 2, 4).permute(2, 0, 3, 1, 4)
        p = self.p if self.training else 0.0
        return F.scaled_dot_product_attention(q, k, v, self.mask, p, self.causal).transpose(1, 2)


class AttentionTest(Case):
    x = torch.randn(7, 5, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(2))

    def test_scaled_dot_product_attention(self):
        self.check_cuts(Attention(0.3), self.x)
        self.check_cuts(Attention(0.3, causal=True), self.x)

    def test_weights_are_those_of_torch(self):
        """With a dropout so small that no element falls, the outputs are the fused kernel's."""
        mask = torch.zeros(5, 5, dtype=torch.bool)
        mask[:, :3] = True
        for causal, given in ((False, None), (True, None), (False, mask), (False, mask.double())):
            model = Attention(1e-9, causal, given).double()
            handle = self.installed(model)
            torch.ops.hetseq.enter_forward(1, 0, torch.tensor(IDS), True)
            keyed = handle.forward(model, self.x)
            self.same([model.eval()(self.x)], [keyed])

    def test_grouped_queries(self):
        class Grouped(Attention):
            def forward(self, x):
                q = self.qkv(x).view(len(x), 5, 6, 4).transpose(1, 2)
                return F.scaled_dot_product_attention(
                    q, q[:, :3], q[:, 3:], dropout_p=0.3, enable_gqa=True
                )

        self.check_cuts(Grouped(0.3), self.x)

    def test_without_dropout_the_fused_kernel_stays(self):
        model = Attention(0.0).double()
        handle = self.installed(model)
        torch.ops.hetseq.enter_forward(1, 0, torch.tensor(IDS), True)
        with torch.profiler.profile() as profile:
            handle.forward(model, self.x)
        names = {event.name for event in profile.events()}
        self.assertIn("aten::_scaled_dot_product_flash_attention_for_cpu", names)

    def test_multihead_attention_by_both_paths(self):
        for need_weights in (False, True):
            with self.subTest(need_weights=need_weights):
                model = nn.MultiheadAttention(8, 2, dropout=0.3, batch_first=True)
                self.check_cuts(
                    model, self.x, lambda x: model(x, x, x, need_weights=need_weights)[0]
                )

    def test_multihead_attention_within_a_time_first_model(self):
        for need_weights in (False, True):
            model = nn.MultiheadAttention(8, 2, dropout=0.3)

            def forward(x, model=model, need_weights=need_weights):
                x = x.transpose(0, 1)
                return model(x, x, x, need_weights=need_weights)[0].transpose(0, 1)

            self.check_cuts(model, self.x, forward)

    def test_transformer_encoder(self):
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.2, batch_first=True)
        self.check_cuts(nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), self.x)

    def test_transformer_decoder(self):
        layer = nn.TransformerDecoderLayer(8, 2, 16, dropout=0.2, batch_first=True)
        model = nn.TransformerDecoder(layer, 2)
        self.check_cuts(model, self.x, lambda x: model(x, x * 0.5))


class TimeFirstTest(Case):
    """(time, samples, ...), where a self-test saw that samples lie in dimension 1."""

    def learnt(self, handle, forward):
        torch.ops.hetseq.note_draws(True)
        for count in (7, 1):
            torch.ops.hetseq.enter_forward(1, 0, torch.tensor(IDS[:count]), True)
            handle.forward(forward, count)
        torch.ops.hetseq.note_draws(False)

    def drawn(self, model, forward):
        handle = self.installed(model)
        self.learnt(handle, forward)
        torch.ops.hetseq.enter_forward(5, 2, torch.tensor(IDS), True)
        return handle.forward(forward, 7)

    def test_numbers_are_those_of_samples_first(self):
        draws = {
            "dropout": lambda shape: F.dropout(torch.ones(shape), 0.4),
            "randn": lambda shape: torch.randn(shape),
            "exponential_": lambda shape: torch.empty(shape).exponential_(),
            "bernoulli": lambda shape: torch.bernoulli(torch.full(shape, 0.5)),
        }
        for name, draw in draws.items():
            for time in (5, 7, 14):
                with self.subTest(name, time=time):
                    first = self.drawn(nn.Identity(), lambda count: draw((count, time, 3)))
                    behind = self.drawn(nn.Identity(), lambda count: draw((time, count, 3)))
                    last = self.drawn(nn.Identity(), lambda count: draw((time, 3, count)))
                    self.assertTrue(torch.equal(first.transpose(0, 1), behind))
                    self.assertTrue(torch.equal(first.movedim(0, 2), last))

    def test_a_transformer_is_that_of_samples_first(self):
        x = torch.randn(7, 5, 8, dtype=torch.float64)
        sums = []
        for batch_first in (True, False):
            torch.manual_seed(2)
            layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.2, batch_first=batch_first)
            model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).double().train()

            def forward(x, model=model, batch_first=batch_first):
                return model(x) if batch_first else model(x.transpose(0, 1)).transpose(0, 1)

            handle = self.installed(model)
            self.learnt(handle, lambda count: forward(x[:count]))
            run = Run(model, forward)
            sums.append(run.sums(handle, x, CUTS[0]))
            for cut in CUTS[1:]:
                self.same(sums[-1], run.sums(handle, x, list(cut)))
        self.same(*sums)

    def test_another_dimension_than_was_seen_is_refused(self):
        handle = self.installed(nn.Identity())
        self.learnt(handle, lambda count: torch.rand(5, count))
        torch.ops.hetseq.enter_forward(5, 2, torch.tensor(IDS), True)
        with self.assertRaisesRegex(RuntimeError, r"rand of .*\(7, 5\).*7 samples"):
            handle.forward(lambda: torch.rand(7, 5))


class Block(nn.Module):
    def __init__(self, width=6):
        super().__init__()
        self.first = nn.Linear(width, width)
        self.drop = nn.Dropout(0.3)
        self.path = DropPath(0.2)

    def forward(self, x):
        x = x + self.path(self.drop(torch.tanh(self.first(x))))
        return F.dropout(x, 0.1, self.training) + F.dropout(x, 0.1, self.training)


class Stack(nn.Module):
    """Blocks, one of them called twice, each run by `call`."""

    def __init__(self, call=lambda block, x: block(x)):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(3))
        self.call = call

    def forward(self, x):
        for block in [*self.blocks, self.blocks[0]]:
            x = self.call(block, x)
        return x


class PaddingTest(Case):
    """What is drawn for an element does not change where any dimension is padded further."""

    def setUp(self):
        super().setUp()
        self.model = None

    def drawn(self, model, forward, ids=IDS):
        if self.model is not model:
            self.model, self.handle = model, self.installed(model)
        torch.ops.hetseq.enter_forward(1, 0, torch.tensor(ids), True)
        return self.handle.forward(forward)

    kinds = {
        "dropout": lambda x: F.dropout(x, 0.4),
        "dropout_": lambda x: F.dropout(x + 0, 0.4, inplace=True),
        "alpha_dropout": lambda x: F.alpha_dropout(x, 0.4, True),
        "alpha_dropout_": lambda x: torch.alpha_dropout_(x + 0, 0.4, True),
        "bernoulli": lambda x: torch.bernoulli(torch.full_like(x, 0.5)),
        "bernoulli_": lambda x: torch.empty_like(x).bernoulli_(0.5),
        "rand": lambda x: torch.rand(x.shape, dtype=x.dtype),
        "rand_like": lambda x: torch.rand_like(x),
        "uniform_": lambda x: torch.empty_like(x).uniform_(),
    }

    def padded(self, shape):
        """The shapes with one dimension, or all, a little longer."""
        for more in (1, 9):
            for d in range(1, len(shape)):
                yield (*shape[:d], shape[d] + more, *shape[d + 1 :])
            yield (shape[0], *(size + more for size in shape[1:]))

    def check(self, draw, shape):
        model = self.model or nn.Identity()
        ones = lambda shape: torch.ones(shape, dtype=torch.float64)  # noqa: E731
        short = self.drawn(model, lambda: draw(ones(shape)))
        for longer in self.padded(shape):
            long = self.drawn(model, lambda: draw(ones(longer)))
            part = tuple(slice(size) for size in short.shape)
            self.assertTrue(torch.equal(short, long[part]), (shape, longer))
            self.assertGreater(len(long.unique()), 1)

    def test_any_dimension_of_any_draw(self):
        for name, draw in self.kinds.items():
            for shape in ((7, 5), (7, 5, 6), (7, 20, 1), (7, 1, 20), (7, 3, 5, 17), (7, 2, 3, 4, 5)):
                with self.subTest(name, shape=shape):
                    self.check(draw, shape)

    def test_whole_features(self):
        kinds = {
            "dropout1d": (lambda x: F.dropout1d(x, 0.4), (7, 9, 5)),
            "dropout2d": (lambda x: F.dropout2d(x, 0.4), (7, 9, 5, 4)),
            "dropout2d_": (lambda x: F.dropout2d(x + 0, 0.4, inplace=True), (7, 9, 5, 4)),
            "feature_alpha_dropout": (lambda x: F.feature_alpha_dropout(x, 0.4, True), (7, 9, 5)),
        }
        for name, (draw, shape) in kinds.items():
            with self.subTest(name):
                self.check(draw, shape)

    def test_samples_times_heads(self):
        model = nn.MultiheadAttention(8, 2, dropout=0.5, batch_first=True)
        model.forward = lambda weights: F.dropout(weights, 0.5)
        short = self.drawn(model, lambda: model(torch.ones(14, 5, 5)))
        long = self.drawn(model, lambda: model(torch.ones(14, 8, 9)))
        self.assertTrue(torch.equal(short, long[:, :5, :5]))
        self.assertFalse(torch.equal(short[0], short[1]))

    def test_coordinates_are_those_of_the_dimensions_not_of_the_memory(self):
        for shape, order in (((7, 6, 5), (0, 2, 1)), ((7, 4, 6, 5), (0, 3, 1, 2))):
            there = [order.index(d) for d in range(len(shape))]
            permuted = torch.ones(shape).permute(order).contiguous().permute(there)
            self.assertFalse(permuted.is_contiguous())
            for draw in (lambda x: F.dropout(x, 0.5), torch.rand_like):
                model = Functional(draw)
                plain = self.drawn(model, lambda: draw(torch.ones(shape)))
                self.assertTrue(torch.equal(plain, self.drawn(model, lambda: draw(permuted))))
        last = torch.ones(7, 3, 4, 5).to(memory_format=torch.channels_last)
        drop = nn.Dropout(0.5)
        plain = self.drawn(drop, lambda: drop(torch.ones(7, 3, 4, 5)))
        self.assertTrue(torch.equal(plain, self.drawn(drop, lambda: drop(last))))

    def test_modules_with_attention(self):
        """A sequence by itself, and beside a longer one that it is padded to."""
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.3, batch_first=True)
        weighted = nn.MultiheadAttention(8, 2, dropout=0.3, batch_first=True)
        kinds = {
            "encoder": (layer, lambda x, mask: layer(x, src_key_padding_mask=mask)),
            "weights": (weighted, lambda x, mask: weighted(x, x, x, mask, need_weights=True)[0]),
            "fused": (weighted, lambda x, mask: weighted(x, x, x, mask, need_weights=False)[0]),
        }
        x = torch.randn(3, 11, 8, dtype=torch.float64)
        mask = torch.zeros(3, 11, dtype=torch.bool)
        mask[0, 6:] = True
        for name, (module, forward) in kinds.items():
            with self.subTest(name):
                module.double().train()
                whole = self.drawn(module, lambda: forward(x, mask), IDS[:3])
                short = self.drawn(module, lambda: forward(x[:1, :6], mask[:1, :6]), IDS[:1])
                self.same([short[0]], [whole[0, :6]])


class InFlightTest(Case):
    """Two forwards, and only then their backwards: each draws again by its own key."""

    x = torch.randn(9, 4, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(4))
    ids = torch.arange(9) + 20
    cut = [6, 3]

    def loss(self, handle, model, part, update):
        begin = part * self.cut[0]
        ids = self.ids[begin : begin + self.cut[part]]
        torch.ops.hetseq.enter_forward(3, update, ids, True)
        x = self.x[begin : begin + self.cut[part]]
        return handle.forward(lambda: loss_of(model(x)))

    def gradients(self, model, together):
        model.double().train()
        handle = self.installed(model)
        losses = []
        for part in (0, 1):
            losses.append(self.loss(handle, model, part, 5 + part))
            if not together:
                losses.pop().backward()
        for loss in losses:
            loss.backward()
        found = [p.grad.clone() for p in model.parameters()]
        model.zero_grad()
        return found

    def check(self, model):
        self.same(self.gradients(model, together=False), self.gradients(model, together=True))

    def test_eager(self):
        self.check(Stack())
        self.check(nn.Sequential(nn.Linear(6, 6), nn.Dropout(0.5), nn.Linear(6, 2)))

    def test_checkpointed(self):
        for reentrant in (False, True):
            with self.subTest(reentrant=reentrant):
                self.check(
                    nn.Sequential(
                        nn.Linear(6, 6),
                        Stack(lambda block, x: checkpoint(block, x, use_reentrant=reentrant)),
                    )
                )

    @unittest.skipUnless(shutil.which("g++"), "torch.compile needs g++")
    def test_compiled(self):
        torch._dynamo.reset()
        model = Stack()
        expected = self.gradients(model, together=False)
        model.compile(backend="aot_eager")
        self.same(expected, self.gradients(model, together=True))


class NameTest(Case):
    def test_children_of_any_name(self):
        """Of the package's own words, and those of transformers: `model`."""

        class Outer(nn.Module):
            def __init__(self):
                super().__init__()
                names = ("model", "module", "forward_", "hetseq", "root", "loss", "task")
                self.parts = names
                for name in names:
                    self.add_module(name, Block())

            def forward(self, x):
                for name in self.parts:
                    x = F.dropout(getattr(self, name)(x), 0.1, self.training)
                return x

        self.check_cuts(Outer(), PlaceTest.x)

    def test_the_model_and_its_child_draw_unlike(self):
        class Outer(nn.Module):
            def __init__(self):
                super().__init__()
                self.model = nn.Dropout(0.5)

            def forward(self, x):
                return torch.stack([F.dropout(x, 0.5), self.model(x)], 1)

        model = Outer()
        handle = self.installed(model)
        torch.ops.hetseq.enter_forward(1, 0, torch.tensor(IDS), True)
        ones = torch.ones(7, 50)
        drawn = handle.forward(lambda: torch.cat([model(ones), F.dropout(ones, 0.5)[:, None]], 1))
        self.assertEqual(len({tuple(d.flatten().tolist()) for d in drawn.unbind(1)}), 3)


class PlaceTest(Case):
    x = torch.randn(7, 4, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(3))

    def outputs(self, model, forward):
        handle = self.installed(model)
        torch.ops.hetseq.enter_forward(1, 0, torch.tensor(IDS), True)
        return handle.forward(forward)

    def test_a_module_called_twice_draws_twice(self):
        drop = nn.Dropout(0.5)
        ones = torch.ones(7, 50)
        first, second = self.outputs(drop, lambda: (drop(ones), drop(ones)))
        self.assertFalse(torch.equal(first, second))
        self.check_cuts(Stack(), self.x)

    def test_more_calls_than_prepared(self):
        drop = nn.Dropout(0.5)
        ones = torch.ones(7, 50)
        drawn = self.outputs(drop, lambda: [drop(ones) for _ in range(20)])
        self.assertEqual(len({tuple((d == 0).flatten().tolist()) for d in drawn}), 20)

    def test_two_modules_and_two_draws_of_one_module_differ(self):
        model = nn.ModuleList([nn.Dropout(0.5), nn.Dropout(0.5)])
        ones = torch.ones(7, 50)
        drawn = self.outputs(
            model, lambda: [model[0](ones), model[1](ones), F.dropout(ones), F.dropout(ones)]
        )
        self.assertEqual(len({tuple((d == 0).flatten().tolist()) for d in drawn}), 4)

    def test_the_next_forward_starts_anew(self):
        handle, run, whole = self.check_cuts(Stack(), self.x)
        run.update -= 1
        for a, b in zip(whole, run.sums(handle, self.x, [7])):
            self.assertTrue(torch.equal(a, b))

    def test_draws_of_an_earlier_call_do_not_shift_those_of_a_later(self):
        class Loop(nn.Module):
            def forward(self, x, times):
                for _ in range(times):
                    y = F.dropout(x, 0.5)
                return y

        loop, ones = Loop(), torch.ones(7, 50)
        a = self.outputs(loop, lambda: (loop(ones, 1), loop(ones, 1))[1])
        b = self.outputs(loop, lambda: (loop(ones, 5), loop(ones, 1))[1])
        self.assertTrue(torch.equal(a, b))

    def test_checkpointing_draws_the_same_again(self):
        plain = Stack()
        _, _, expected = self.check_cuts(plain, self.x)
        for reentrant in (False, True):
            for preserve in (False, True):
                with self.subTest(reentrant=reentrant, preserve=preserve):

                    def call(block, x, reentrant=reentrant, preserve=preserve):
                        return checkpoint(
                            block, x, use_reentrant=reentrant, preserve_rng_state=preserve
                        )

                    model = Stack(call)
                    model.load_state_dict(plain.state_dict())
                    _, _, sums = self.check_cuts(model, self.x)
                    self.same(expected, sums)

    def test_nested_checkpoints(self):
        plain = nn.Sequential(Stack(), Stack())
        _, _, expected = self.check_cuts(plain, self.x)
        inner = lambda block, x: checkpoint(block, x, use_reentrant=False)  # noqa: E731
        model = nn.Sequential(Stack(inner), Stack(inner))
        model.load_state_dict(plain.state_dict())
        forward = lambda x: model[1](checkpoint(model[0], x, use_reentrant=False))  # noqa: E731
        model.double()
        handle = self.installed(model)
        outer = Run(model, forward)
        # The same paths as in `plain`, whose Sequential draws nothing itself.
        self.same(expected, outer.sums(handle, self.x, [7]))

    def test_recomputation_by_other_means_is_refused(self):
        drop = nn.Dropout(0.5)

        class Again(torch.autograd.Function):
            @staticmethod
            def forward(context, x):
                return drop(x)

            @staticmethod
            def backward(context, gradient):
                return drop(gradient)

        model = nn.Sequential(drop)
        handle = self.installed(model)
        torch.ops.hetseq.enter_forward(1, 0, torch.tensor(IDS), True)
        x = self.x.clone().requires_grad_()
        loss = handle.forward(lambda: Again.apply(x).sum())
        with self.assertRaisesRegex(RuntimeError, r"0 \(Dropout\) runs inside backward"):
            loss.backward()


class RefusalTest(Case):
    def refused(self, model, x, pattern):
        handle = self.installed(model)
        torch.ops.hetseq.enter_forward(1, 0, torch.tensor(IDS), True)
        with self.assertRaisesRegex(RuntimeError, pattern):
            handle.forward(model, x)

    def test_time_in_dimension_0(self):
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.2)
        said = r"dropout of dropout1 \(Dropout\).*\(5, 7, 8\).*7 samp.*batch_first=True"
        self.refused(layer, torch.randn(5, 7, 8), said)

    def test_packed_sequences(self):
        model = nn.LSTM(4, 4, 2, dropout=0.5, batch_first=True)

        def forward(x):
            return model(nn.utils.rnn.pack_padded_sequence(x, [5] * len(x), batch_first=True))[0].data

        handle = self.installed(model)
        torch.ops.hetseq.enter_forward(1, 0, torch.tensor(IDS), True)
        with self.assertRaisesRegex(RuntimeError, r"torch.lstm in the model \(LSTM\).*packed.*set dropout=0"):
            handle.forward(forward, torch.randn(7, 5, 4))

    def test_what_cannot_be_keyed(self):
        draws = {
            "randperm": lambda x: x[torch.randperm(7)],
            "poisson": lambda x: x + torch.poisson(x.abs()),
            "_standard_gamma": lambda x: x + torch.distributions.Gamma(x.abs() + 1, 1.0).sample(),
            "random_": lambda x: x + torch.empty_like(x).random_(),
            "multinomial": lambda x: torch.multinomial(torch.ones(9), 7),
        }
        for name, draw in draws.items():
            with self.subTest(name):
                model = nn.Sequential(Functional(draw))
                self.refused(model, torch.randn(7, 6), rf"torch\.{name} in 0 \(Functional\) draws")

    def test_a_generator_of_ones_own(self):
        generator = torch.Generator()
        draws = {
            "rand": lambda x: x + torch.rand(x.shape, generator=generator),
            "randn": lambda x: x + torch.randn(x.shape, generator=generator),
            "randint": lambda x: x + torch.randint(3, (7, 1), generator=generator),
            "normal_": lambda x: x + torch.empty_like(x).normal_(generator=generator),
            "bernoulli_": lambda x: x + torch.empty_like(x).bernoulli_(0.5, generator=generator),
            "multinomial": lambda x: x + torch.multinomial(x.abs(), 1, generator=generator),
        }
        for name, draw in draws.items():
            with self.subTest(name):
                said = rf"torch\.{name} in 0 \(Functional\) .*generator of its own.*leave the generator out"
                self.refused(nn.Sequential(Functional(draw)), torch.randn(7, 6), said)

    def test_a_draw_that_all_samples_share(self):
        shared = Functional(lambda x: x * torch.rand(5, 6))
        said = r"rand of .*\(5, 6\).*7 samples.*draw a tensor of shape \(samples, ...\)"
        self.refused(shared, torch.randn(7, 5, 6), said)


def quantiles(values):
    return torch.quantile(values.double().flatten()[:200000], torch.linspace(0.02, 0.98, 25).double())


class NoiseTest(Case):
    """What a module draws itself is a function of the sample, and has its distribution."""

    def drawn(self, draw, n, update=0, training=True, ids=None):
        handle = self.installed(nn.Identity())
        ids = torch.arange(n) if ids is None else ids
        torch.ops.hetseq.enter_forward(1, update, ids, training)
        return handle.forward(draw)

    kinds = {
        "randn": lambda x: x * torch.randn(x.shape, dtype=x.dtype),
        "randn of a size by name": lambda x: x * torch.randn(size=x.shape, dtype=x.dtype),
        "randn_like": lambda x: x * torch.randn_like(x),
        "normal_": lambda x: x * torch.empty_like(x).normal_(1, 3),
        "normal of tensors": lambda x: x + torch.normal(x.detach(), x.detach().abs()),
        "normal of a mean": lambda x: x + torch.normal(x.detach(), 2.0),
        "normal of a std": lambda x: x + torch.normal(1.0, x.detach().abs()),
        "normal of a size": lambda x: x * torch.normal(0.0, 1.0, x.shape).to(x.dtype),
        "log_normal_": lambda x: x * torch.empty_like(x).log_normal_(0, 0.3),
        "exponential_": lambda x: x * torch.empty_like(x).exponential_(2),
        "geometric_": lambda x: x * torch.empty_like(x).geometric_(0.3),
        "cauchy_": lambda x: x + torch.empty_like(x).cauchy_(),
        "randint": lambda x: x * torch.randint(5, (len(x), 1, 1)),
        "randint from": lambda x: x * torch.randint(2, 9, (len(x), 1, 1), dtype=torch.int32),
        "randint of one dimension": lambda x: x * torch.randint(0, 1000, (len(x),))[:, None, None],
        "randint by name": lambda x: x * torch.randint(low=1, high=9, size=(len(x), 1, 1)),
        "randint_like": lambda x: x * torch.randint_like(x, 2, 7),
        "randint_like to": lambda x: x * torch.randint_like(x, 7),
        "random_": lambda x: x * torch.empty_like(x).random_(1, 7),
        "multinomial": lambda x: x * torch.multinomial(x[:, 0].detach().abs(), 1)[:, :, None],
        "multinomial of three": lambda x: x * torch.multinomial(x[:, 0].abs(), 3).sum(1)[:, None, None],
        "with replacement": lambda x: x * torch.multinomial(x[:, 0].abs(), 9, True).sum(1)[:, None, None],
        "one a sample": lambda x: x * torch.multinomial(torch.arange(9.0), len(x), True)[:, None, None],
        "gumbel_softmax": lambda x: F.gumbel_softmax(x, 0.7),
        "hard gumbel_softmax": lambda x: F.gumbel_softmax(x, hard=True),
        "rrelu": lambda x: F.rrelu(x, training=True),
        "rrelu in place": lambda x: F.rrelu(x * 1, training=True, inplace=True),
        "flattened": lambda x: x * torch.randn(len(x) * 5, 6, dtype=x.dtype).view(x.shape),
        "dropout of flattened": lambda x: F.dropout(x.flatten(0, 1), 0.4).view(x.shape),
        "one for all": lambda x: x * torch.rand(()),
        "one for all of shape (1)": lambda x: x * torch.randn(1).item(),
        "one for all of shape (1, 1, 1)": lambda x: x * torch.empty(1, 1, 1, dtype=x.dtype).uniform_(),
        "one integer for all": lambda x: x * (torch.randint(3, 10**6, (1,)).item() * 1e-6),
        "layerdrop": lambda x: x * sum(2**-i for i in range(20) if torch.rand([]) < 0.5),
        "Normal": lambda x: torch.distributions.Normal(x, x.abs() + 0.1).rsample(),
        "Normal's sample": lambda x: x + torch.distributions.Normal(x, 1.0).sample(),
        "MultivariateNormal": lambda x: torch.distributions.MultivariateNormal(
            x, torch.eye(6, dtype=x.dtype)
        ).rsample(),
        "Categorical": lambda x: x + torch.distributions.Categorical(logits=x).sample()[..., None],
        "Bernoulli": lambda x: x + torch.distributions.Bernoulli(logits=x).sample(),
        "Uniform": lambda x: torch.distributions.Uniform(x - 1, x + 1).rsample(),
        "Gumbel": lambda x: torch.distributions.Gumbel(x, 1.0).rsample(),
        "Laplace": lambda x: torch.distributions.Laplace(x, 1.0).rsample(),
        "Exponential": lambda x: x * torch.distributions.Exponential(x.abs() + 1).rsample(),
        "RelaxedOneHotCategorical": lambda x: torch.distributions.RelaxedOneHotCategorical(
            torch.tensor(0.5, dtype=x.dtype), logits=x
        ).rsample(),
    }
    x = torch.randn(7, 5, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(5))

    def test_every_kind(self):
        for name, draw in self.kinds.items():
            with self.subTest(name):
                self.check_cuts(Functional(draw), self.x)

    def test_distributions(self):
        """The same quantiles as torch's own draws."""
        kinds = {
            "randn": lambda: torch.randn(20000, 3, 5),
            "normal": lambda: torch.normal(2.0, 3.0, (20000, 5)),
            "exponential": lambda: torch.empty(20000, 5).exponential_(2),
            "geometric": lambda: torch.empty(20000, 5).geometric_(0.1),
            "cauchy": lambda: torch.empty(20000, 5).cauchy_(1, 2),
            "log_normal": lambda: torch.empty(20000, 5).log_normal_(),
            "randint": lambda: torch.randint(-3, 40, (20000, 5)),
            "multinomial": lambda: torch.multinomial(torch.arange(50.0).expand(20000, 50), 1),
            "multinomial with replacement": lambda: torch.multinomial(
                torch.arange(50.0).expand(20000, 50), 3, True
            ),
            "the second of two": lambda: torch.multinomial(torch.arange(50.0).expand(20000, 50), 2)[:, 1],
        }
        for name, draw in kinds.items():
            with self.subTest(name):
                keyed, plain = quantiles(self.drawn(draw, 20000)), quantiles(draw())
                spread = float(plain[-4] - plain[3])
                self.assertLess(float((keyed - plain)[2:-2].abs().max()), 0.06 * spread + 0.01)

    def test_bounds(self):
        n = 50000
        integers = self.drawn(lambda: torch.randint(3, 7, (n, 3)), n)
        self.assertEqual(integers.dtype, torch.int64)
        self.assertEqual(integers.unique().tolist(), [3, 4, 5, 6])
        never = self.drawn(lambda: torch.multinomial(torch.tensor([0.0, 1, 0, 2, 0]).expand(n, 5), 4, True), n)
        self.assertEqual(never.unique().tolist(), [1, 3])
        both = self.drawn(lambda: torch.multinomial(torch.tensor([0.0, 1, 0, 2, 0]).expand(n, 5), 2), n)
        self.assertTrue(torch.equal(both.sort(1).values, torch.tensor([1, 3]).expand(n, 2)))
        half = self.drawn(lambda: torch.randn(n, dtype=torch.bfloat16), n)
        self.assertEqual(half.dtype, torch.bfloat16)
        self.assertTrue(bool(self.drawn(lambda: torch.empty(n).exponential_(), n).gt(0).all()))

    def test_elements_and_samples_are_independent(self):
        drawn = self.drawn(lambda: torch.randn(400, 400), 400).double()
        for sums in (drawn.corrcoef(), drawn.T.corrcoef()):
            self.assertLess(float((sums - torch.eye(400)).abs().max()), 0.3)
        self.assertLess(float((drawn[:, 0::2] * drawn[:, 1::2]).mean().abs()), 0.02)

    def test_padding_changes_nothing(self):
        for draw in (
            lambda shape: torch.randn(shape),
            lambda shape: torch.empty(shape).exponential_(),
            lambda shape: torch.randint(1000, shape),
        ):
            short, long = (self.drawn(lambda s=s: draw(s), 7) for s in ((7, 3, 5), (7, 6, 11)))
            self.assertTrue(torch.equal(short, long[:, :3, :5]))

    def test_one_number_for_all_changes_by_update_and_place(self):
        draw = lambda: torch.stack([torch.rand(()), torch.rand(()), torch.rand(1)[0]])  # noqa: E731
        one, again, next_one = self.drawn(draw, 7), self.drawn(draw, 3), self.drawn(draw, 7, update=1)
        self.assertTrue(torch.equal(one, again))
        self.assertEqual(len(torch.cat([one, next_one]).unique()), 6)

    def test_one_sample_that_was_several_before(self):
        """Shape (1) is one number for all where it once was drawn for several, else the sample's."""
        handle = self.installed(nn.Identity())

        def draw(ids):
            torch.ops.hetseq.enter_forward(1, 0, torch.tensor(ids), True)
            return handle.forward(lambda: (torch.rand(len(ids)), torch.rand(1)))

        (samples, for_all), (one, also) = draw(IDS), draw(IDS[2:3])
        self.assertEqual(one.item(), samples[2].item())
        self.assertEqual(also.item(), for_all.item())

    def test_evaluation_draws_the_same_in_each_update(self):
        draw = lambda: torch.randn(7, 5)  # noqa: E731
        training = self.drawn(draw, 7)
        first, later = (self.drawn(draw, 7, update, training=False) for update in (0, 9))
        self.assertTrue(torch.equal(first, later))
        self.assertFalse(torch.equal(first, training))
        part = self.drawn(lambda: torch.randn(3, 5), 3, training=False, ids=torch.arange(2, 5))
        self.assertTrue(torch.equal(part, first[2:5]))

    def test_rows_of_unequal_samples(self):
        """Nodes of graphs: dropout and noise by sample and node."""
        sizes = torch.tensor([3, 1, 4, 2, 5, 1, 2])

        class Graphs(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(6, 6)

            def forward(self, x):
                which = (x[:, 0, 0] - 1).round().long()  # the sample's place in IDS
                nodes = sizes[which]
                owner = torch.repeat_interleave(torch.arange(len(x)), nodes)
                flat = torch.cat([x[i, : nodes[i], 1:] for i in range(len(x))])
                with rows(owner):
                    flat = F.dropout(self.linear(flat), 0.4) * torch.randn(len(flat), 6)
                sums = torch.zeros(len(x), 6, dtype=x.dtype).index_add(0, owner, flat)
                return F.dropout(sums, 0.3)

        x = torch.randn(7, 5, 7, dtype=torch.float64)
        x[:, 0, 0] = torch.arange(1, 8)
        self.check_cuts(Graphs(), x)
        model = nn.Identity()
        handle = self.installed(model)

        def draw(owner):
            torch.ops.hetseq.enter_forward(1, 0, torch.tensor([8, 9]), True)

            def forward():
                with rows(torch.tensor(owner)):
                    return torch.rand(len(owner))

            return handle.forward(forward)

        self.assertEqual(len(draw([0, 0, 0, 1, 1]).unique()), 5)
        self.assertTrue(torch.equal(draw([0, 0, 1])[[0, 1, 2]], draw([1, 0, 0])[[1, 2, 0]]))
        with self.assertRaisesRegex(RuntimeError, "the owner 2.*has 2 samples"):
            draw([0, 2])

    def test_recurrent_networks_of_several_layers(self):
        x = torch.randn(7, 5, 6, dtype=torch.float64)
        for kind in (nn.LSTM, nn.GRU, nn.RNN):
            for more in ({}, {"bidirectional": True}, {"bias": False}):
                with self.subTest(kind.__name__, **more):
                    model = kind(6, 4, 3, dropout=0.4, batch_first=True, **more)
                    self.check_cuts(model, x, lambda x, model=model: model(x)[0])
                    time_first = kind(6, 4, 3, dropout=0.4, **more)
                    time_first.load_state_dict(model.state_dict())
                    handle = self.installed(time_first.double().train())
                    run = Run(time_first, lambda x: time_first(x.transpose(0, 1))[0].transpose(0, 1))
                    other = Run(model, lambda x, model=model: model(x)[0])
                    sums = run.sums(handle, x, [3, 4])
                    self.same(sums, other.sums(self.installed(model), x, [7]))
        projected = nn.LSTM(6, 4, 2, dropout=0.4, batch_first=True, proj_size=3)
        self.check_cuts(projected, x, lambda x: projected(x)[0])

    def test_recurrent_networks_without_dropout_are_torchs(self):
        model = nn.LSTM(6, 4, 2, dropout=1e-9, batch_first=True)
        x = torch.randn(7, 5, 6)
        handle = self.installed(model)
        torch.ops.hetseq.enter_forward(1, 0, torch.tensor(IDS), True)
        keyed, (h, c) = handle.forward(model, x)
        plain, (plain_h, plain_c) = model.eval()(x)
        self.same([keyed, h, c], [plain, plain_h, plain_c], 1e-6)

    def test_checkpointing_draws_the_same_noise_again(self):
        class Noisy(nn.Module):
            def __init__(self, call):
                super().__init__()
                self.linear, self.call = nn.Linear(6, 6), call

            def noisy(self, x):
                return torch.tanh(self.linear(x)) * torch.randn_like(x) + torch.randn_like(x)

            def forward(self, x):
                return self.call(self.noisy, self.call(self.noisy, x))

        plain = Noisy(lambda function, x: function(x))
        _, _, expected = self.check_cuts(plain, self.x)
        for reentrant in (False, True):
            model = Noisy(lambda function, x, r=reentrant: checkpoint(function, x, use_reentrant=r))
            model.load_state_dict(plain.state_dict())
            _, _, sums = self.check_cuts(model, self.x)
            self.same(expected, sums)


class ElsewhereTest(Case):
    def draws(self, model):
        torch.manual_seed(11)
        x = torch.randn(7, 4, 6)
        out = [model(x), torch.rand(7, 2), torch.empty(7, 1).bernoulli_(0.5), torch.randperm(9)]
        out.append(F.scaled_dot_product_attention(x, x, x, dropout_p=0.4))
        return [*out, torch.get_rng_state()]

    def equal(self, a, b):
        self.assertTrue(all(torch.equal(one, other) for one, other in zip(a, b)))

    def test_torch_is_untouched_outside_and_afterwards(self):
        model = Stack().train()
        before = self.draws(model)
        files = {name: value for name, value in vars(torch.utils.checkpoint).items()}
        handle = randomness.install(model)
        self.equal(before, self.draws(model))
        torch.ops.hetseq.enter_forward(1, 0, torch.tensor(IDS), True)
        state = torch.get_rng_state()
        handle.forward(model, torch.randn(7, 4, 6, generator=torch.Generator())).sum().backward()
        self.assertTrue(torch.equal(state, torch.get_rng_state()))
        self.equal(before, self.draws(model))
        torch.ops.hetseq.leave_step()
        handle.remove()
        self.equal(before, self.draws(model))
        self.assertEqual(files, dict(vars(torch.utils.checkpoint)))
        self.assertTrue(all("forward" not in vars(module) for module in model.modules()))

    def test_twice_in_one_process(self):
        first = Stack()
        self.installed(first)
        with self.assertRaisesRegex(RuntimeError, "another module"):
            randomness.install(Stack())
        self.check_cuts(first, PlaceTest.x)
        self.check_cuts(Stack(), PlaceTest.x)

    def test_a_copy_of_the_module_is_plain(self):
        model = Stack().double()
        handle = self.installed(model)
        copied = copy.deepcopy(model)
        torch.ops.hetseq.enter_forward(1, 0, torch.tensor(IDS), True)
        handle.forward(model, PlaceTest.x)
        copied.eval()
        with torch.no_grad():
            for p in copied.parameters():
                p.zero_()
        self.same([copied(PlaceTest.x)], [PlaceTest.x * 16])


@unittest.skipUnless(shutil.which("g++"), "torch.compile needs g++")
class CompileTest(Case):
    x = PlaceTest.x

    def setUp(self):
        super().setUp()
        torch._dynamo.reset()

    def check_like_eager(self, compile_parts, make=Stack, backend="aot_eager", x=None):
        """Compiled code gives the sums of eager code, for all cuts."""
        x = self.x if x is None else x
        plain = make()
        _, _, expected = self.check_cuts(plain, x)
        model = make()
        model.load_state_dict(plain.state_dict())
        compile_parts(model, backend)
        _, _, sums = self.check_cuts(model, x)
        self.same(expected, sums)

    def test_the_whole_model(self):
        self.check_like_eager(lambda model, backend: model.compile(backend=backend))

    def test_inductor(self):
        from torch._inductor import cpu_vec_isa

        # Each would be tried by a compiler and a Python.
        with mock.patch.object(cpu_vec_isa, "supported_vec_isa_list", []):
            self.check_like_eager(
                lambda model, backend: model.compile(backend=backend), Block, "inductor"
            )

    def test_one_compiled_block_serves_many_modules(self):
        from torch._dynamo.testing import CompileCounterWithBackend

        def compile_blocks(model, backend):
            for block in model.blocks:
                block.compile(backend=backend)

        self.check_like_eager(compile_blocks)
        torch._dynamo.reset()
        counter = CompileCounterWithBackend("aot_eager")
        model = Stack().double()
        compile_blocks(model, counter)
        Run(model).sums(self.installed(model), self.x + 0, [7])
        # Three blocks and a second call of the first. The first block's input is a view. Torch 2.7
        # cuts its graphs where a module is called.
        is_old = torch.__version__.startswith("2.7.")
        self.assertLessEqual(counter.frame_count, 6 if is_old else 2)

    def test_the_shell_of_torch_compile(self):
        def compile_parts(model, backend):
            for i in range(3):
                model.blocks[i] = torch.compile(model.blocks[i], backend=backend)

        self.check_like_eager(compile_parts)

    def test_a_graph_break(self):
        class Broken(Block):
            def forward(self, x):
                y = self.drop(self.first(x))
                torch._dynamo.graph_break()
                return F.dropout(y, 0.3, self.training) + self.path(y)

        def make():
            return nn.Sequential(Broken(), Broken())

        self.check_like_eager(lambda model, backend: model.compile(backend=backend), make)

    def test_attention(self):
        def make():
            layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.2, batch_first=True)
            return nn.Sequential(layer, Attention(0.3))

        self.check_like_eager(
            lambda model, backend: model.compile(backend=backend), make, x=AttentionTest.x
        )

    @unittest.skipIf(torch.__version__.startswith("2.7."), "torch 2.7 cuts its graphs where a module is called")
    def test_masked_attention_stays_in_one_graph(self):
        mask = torch.ones(5, 5, dtype=torch.bool).tril(-1)  # the first query sees nothing
        for given in (mask, torch.zeros(5, 5, dtype=torch.float64).masked_fill(~mask, -math.inf)):
            with self.subTest(dtype=given.dtype):
                torch._dynamo.reset()
                self.check_like_eager(lambda model, backend: model.compile(backend=backend, fullgraph=True),
                                      lambda: Attention(0.3, mask=given), x=AttentionTest.x)

    def test_both_paths_of_multihead_attention(self):
        class Self(nn.Module):
            def __init__(self):
                super().__init__()
                self.attention = nn.MultiheadAttention(8, 2, dropout=0.3, batch_first=True)

            def forward(self, x):
                a = self.attention(x, x, x, need_weights=True)[0]
                return a + self.attention(x, x, x, need_weights=False)[0]

        self.check_like_eager(
            lambda model, backend: model.compile(backend=backend), Self, x=AttentionTest.x
        )

    def test_checkpointing_inside_and_outside(self):
        def make():
            return Stack(lambda block, x: checkpoint(block, x, use_reentrant=False))

        self.check_like_eager(lambda model, backend: model.compile(backend=backend), make)

        def compile_blocks(model, backend):
            for block in model.blocks:
                block.compile(backend=backend)

        self.check_like_eager(compile_blocks, make)

    def test_noise(self):
        """What is drawn in compiled code is what is drawn in eager code."""
        kept = ("randn", "randn_like", "normal_", "normal of tensors", "exponential_", "randint", "randint_like",
                "multinomial", "gumbel_softmax", "Normal", "Categorical", "rrelu", "flattened", "one for all")

        class All(nn.Module):
            """One beside the other, since each model is compiled for several shapes."""

            def __init__(self):
                super().__init__()
                self.parts = nn.ModuleList(Functional(NoiseTest.kinds[name]) for name in kept)

            def forward(self, x):
                return torch.cat([part(x) for part in self.parts], -1)

        self.check_like_eager(lambda model, backend: model.compile(backend=backend), All, x=NoiseTest.x)

    def test_a_compiled_function_is_refused_or_keyed(self):
        function = torch.compile(lambda x: F.dropout(x, 0.5), backend="aot_eager")
        model = Functional(function)
        self.check_like_eager(
            lambda model, backend: None, lambda: Functional(function), x=torch.randn(7, 6).double()
        )
        del model

    def test_compiled_before_and_after_hetseq(self):
        model = Stack().double()
        model.compile(backend="aot_eager")

        def draw():
            torch.manual_seed(3)
            return model(self.x)

        before = draw()
        handle = randomness.install(model)
        torch.ops.hetseq.enter_forward(1, 0, torch.tensor(IDS), True)
        keyed = handle.forward(model, self.x)
        state = torch.get_rng_state()
        self.assertTrue(torch.equal(keyed, handle.forward(model, self.x)))
        self.assertTrue(torch.equal(state, torch.get_rng_state()))
        torch.ops.hetseq.leave_step()
        handle.remove()
        self.assertTrue(torch.equal(before, draw()))


if __name__ == "__main__":
    unittest.main()
