"""Batch normalisation over groups of samples that no cut of a batch divides (ghost batch normalisation: Hoffer, Hubara &
Soudry 2017, "Train longer, generalize better", section 4), for unmodified modules.

In training each group of a micro-batch is normalised by its own statistics: what PyTorch's module gives for a batch of
that group on one device. Running statistics are put aside in a forward, summed over all groups of the update and all
ranks with the gradients, and folded into the module's buffers once, when the update is applied. With K groups in the
batch and momentum m:

    new = (1 - m)^K old + sum over groups i of m (1 - m)^(K - 1 - i) statistic_i

as if one device had seen the groups one after the other.
"""

from __future__ import annotations

from typing import Any, Callable, Optional, Sequence

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _BatchNorm

from .draw_places import RandomnessError, scope

__all__ = ["BUFFERS", "GroupNorms", "SUMS", "is_grouped", "refuse_compiled",
           "refuse_compiled_norms", "without_size_check"]

_batch_norm = torch.ops.aten.batch_norm.default

SUMS = "hetseq.norm_sums"  # the name of the buffer that the trainer sums over ranks
BUFFERS = ("running_mean", "running_var", "num_batches_tracked")  # of a module, which change with its groups


def is_grouped(module: nn.Module) -> bool:
    """A batch normalisation that looks at other samples in training."""
    return isinstance(module, _BatchNorm) and module.training


class _Entry:
    """A module with running statistics, and its place in the sums: channels of means, of variances, and the number of
    groups, each counted as often as it was normalised."""

    def __init__(self, name: str, module: _BatchNorm, begin: int) -> None:
        self.name, self.module, self.begin = name, module, begin
        self.channels = module.running_mean.numel()
        self.tracked: Optional[torch.Tensor] = None  # the module's count, which its forward counts up; None: it has none
        self.calls: list[tuple[torch.Tensor, torch.Tensor, int]] = []  # means and variances (groups, channels), groups

    @property
    def size(self) -> int:
        return 2 * self.channels + 1

    def settle_count(self) -> None:
        """The count is as it was after the last update, whatever forwards and recomputations came since."""
        count = self.module.num_batches_tracked
        if count is None:
            self.tracked = None
        elif self.tracked is None:
            self.tracked = count.clone()
        else:
            count.copy_(self.tracked)

    def add_to_count(self, groups: int) -> None:
        if self.tracked is not None:
            self.tracked += groups
            self.settle_count()


class _GroupedNorm(torch.autograd.Function):
    """x (samples * rows, channels, ...) normalised by groups of `sizes` rows of dimension 0. Gives the groups' means and
    unbiased variances (groups, channels) too."""

    @staticmethod
    def forward(ctx, x, weight, bias, sizes, eps):
        out, means, variances, saved, begin = torch.empty_like(x, memory_format=_format(x)), [], [], [], 0
        for size in sizes:
            part = slice(begin, begin + size)
            mean, variance = (torch.zeros(x.shape[1], dtype=_statistics_type(x), device=x.device) for _ in range(2))
            # With momentum 1 the running statistics become those of the group.
            out[part], own_mean, inverse = torch.native_batch_norm(x[part], weight, bias, mean, variance, True, 1.0, eps)
            means.append(mean)
            variances.append(variance)
            saved += [own_mean, inverse]
            begin += size
        ctx.save_for_backward(x, weight, *saved)
        ctx.sizes, ctx.eps = sizes, eps
        means, variances = torch.stack(means), torch.stack(variances)
        ctx.mark_non_differentiable(means, variances)
        return out, means, variances

    @staticmethod
    def backward(ctx, gradient, _means, _variances):
        x, weight, *saved = ctx.saved_tensors
        of_x = torch.empty_like(x)
        of_weight = of_bias = None
        begin = 0
        needs = [ctx.needs_input_grad[0], ctx.needs_input_grad[1], ctx.needs_input_grad[2]]
        for group, size in enumerate(ctx.sizes):
            part = slice(begin, begin + size)
            mean, inverse = saved[2 * group:2 * group + 2]
            own, own_weight, own_bias = torch.ops.aten.native_batch_norm_backward(
                gradient[part], x[part], weight, None, None, mean, inverse, True, ctx.eps, needs)
            if needs[0]:
                of_x[part] = own
            if needs[1]:
                of_weight = own_weight if of_weight is None else of_weight + own_weight
            if needs[2]:
                of_bias = own_bias if of_bias is None else of_bias + own_bias
            begin += size
        return of_x if needs[0] else None, of_weight, of_bias, None, None


def _format(x: torch.Tensor) -> torch.memory_format:
    """That of what PyTorch's own gives."""
    for dimensions, last in ((4, torch.channels_last), (5, torch.channels_last_3d)):
        if x.dim() == dimensions and x.is_contiguous(memory_format=last) and not x.is_contiguous():
            return last
    return torch.contiguous_format


def _statistics_type(x: torch.Tensor) -> torch.dtype:
    return torch.float64 if x.dtype == torch.float64 else torch.float32


class GroupNorms:
    """The batch normalisations of a module while it trains."""

    def __init__(self, model: nn.Module) -> None:
        self._entries: list[_Entry] = []
        self.exists = False
        begin = 0
        for name, module in model.named_modules():
            if not is_grouped(module):
                continue
            self.exists = True
            if module.running_mean is not None:
                self._entries.append(_Entry(name, module, begin))
                begin += self._entries[-1].size
        self._by_buffer: dict[int, _Entry] = {}
        # The trainer moves and converts it with the module's buffers.
        self.sums: Optional[torch.Tensor] = torch.zeros(begin) if begin else None
        self.keeps = False  # the statistics of forwards count

    def begin(self) -> None:
        """A forward in training begins."""
        self._by_buffer = {id(entry.module.running_mean): entry for entry in self._entries}
        for entry in self._entries:
            entry.calls = []
            entry.settle_count()

    def end(self) -> None:
        """The forward has ended: adds what it put aside to the sums."""
        for entry in self._entries:
            if self.keeps and scope.groups is not None:
                self._add(entry)
            entry.calls = []

    def _add(self, entry: _Entry) -> None:
        first, total = scope.groups[:2]
        calls, momentum = len(entry.calls), entry.module.momentum
        sums = self.sums[entry.begin:entry.begin + entry.size]
        for call, (means, variances, groups) in enumerate(entry.calls):
            if groups == 0:
                continue
            weights = [1.0 if momentum is None else
                       momentum * (1 - momentum) ** (total * calls - 1 - ((first + i) * calls + call))
                       for i in range(groups)]
            weights = torch.tensor(weights, dtype=torch.float64, device=means.device)
            sums[:entry.channels] += weights @ means.double()
            sums[entry.channels:2 * entry.channels] += weights @ variances.double()
            sums[-1] += groups

    @torch.no_grad()
    def take_sums(self) -> None:
        """The sums are those of all ranks: the buffers take them in."""
        counts = torch.stack([self.sums[entry.begin + entry.size - 1] for entry in self._entries]).tolist()
        for entry, count in zip(self._entries, map(round, counts)):
            if count == 0:
                continue
            module = entry.module
            sums = self.sums[entry.begin:entry.begin + entry.size]
            of_mean, of_variance = sums[:entry.channels], sums[entry.channels:2 * entry.channels]
            if module.momentum is None and entry.tracked is None:  # as PyTorch has it
                continue
            if module.momentum is None:  # the mean of all
                before = int(entry.tracked)
                kept, taken = before / (before + count), 1 / (before + count)
            else:
                kept, taken = (1 - module.momentum) ** count, 1.0
            module.running_mean.copy_(module.running_mean * kept + of_mean * taken)
            module.running_var.copy_(module.running_var * kept + of_variance * taken)
            entry.add_to_count(count)

    def batch_norm(self, x: torch.Tensor, weight: Optional[torch.Tensor], bias: Optional[torch.Tensor],
                   running_mean: Optional[torch.Tensor], running_var: Optional[torch.Tensor], training: bool,
                   momentum: float, eps: float, cudnn_enabled: bool) -> torch.Tensor:
        """Stands for torch.batch_norm inside a forward."""
        if not training:
            return _batch_norm(x, weight, bias, running_mean, running_var, False, momentum, eps, cudnn_enabled)
        self._check()
        entry = self._entry(running_mean)
        sizes = self._sizes(x, entry)
        if x.numel() // max(1, len(x) * x.shape[1]) * min(sizes) < 2:
            return self._of_too_few(entry, x, weight, bias, running_mean, running_var, eps)
        out, means, variances = _GroupedNorm.apply(x, weight, bias, sizes, eps)
        self._put_aside(entry, means, variances, len(sizes))
        return out

    def _check(self) -> None:
        if not scope.trains:
            raise RandomnessError(
                f"a batch normalisation in {_where()} uses the statistics of the samples in evaluation (they would depend "
                "on how the data are cut): leave track_running_stats on, and its module to model.eval()")
        if not self.exists:
            raise RandomnessError(
                f"torch.batch_norm in {_where()} normalises over the samples of a micro-batch (how a batch is cut would "
                "matter): use the module nn.BatchNorm1d, 2d or 3d, which hetseq gives groups of samples")

    def _put_aside(self, entry: Optional[_Entry], means: Any, variances: Any, groups: int) -> None:
        if entry is None:
            return
        entry.settle_count()
        if not scope.replays:
            entry.calls.append((means, variances, groups))

    def _of_too_few(self, entry: Optional[_Entry], x: torch.Tensor, weight: Any, bias: Any, mean: Any, variance: Any,
                    eps: float) -> torch.Tensor:
        """A group of one sample, of which a channel has one value: the running statistics are used. It is the only one
        of its batch."""
        if mean is None:
            raise ValueError(f"Expected more than 1 value per channel when training, got input size {tuple(x.shape)}")
        self._put_aside(entry, None, None, 0)
        return _batch_norm(x, weight, bias, mean, variance, False, 0.0, eps, False)

    def _entry(self, mean: Optional[torch.Tensor]) -> Optional[_Entry]:
        if mean is None:
            return None
        entry = self._by_buffer.get(id(mean))
        if entry is None:
            raise RandomnessError(
                f"a batch normalisation in {_where()} keeps running statistics in a tensor that is no buffer of an "
                "nn.BatchNorm (hetseq folds the statistics of all ranks into these): use nn.BatchNorm1d, 2d or 3d")
        return entry

    def _sizes(self, x: torch.Tensor, entry: Optional[_Entry]) -> list[int]:
        """Rows of dimension 0 of each group; one group where the trainer only measures time."""
        samples = scope.samples
        if samples == 0 or len(x) % samples:
            raise RandomnessError(
                f"{_named(entry)} got a tensor of shape {tuple(x.shape)}, and dimension 0 is not the {samples} samples (it "
                "normalises groups of them, which it divides itself): give it all samples of the micro-batch, (samples, "
                "channels, ...)")
        sizes = scope.groups[2:] if scope.groups is not None else [samples]
        return [size * (len(x) // samples) for size in sizes]


def _where() -> str:
    return scope.current.name if scope.current is not None else "the task's forward"


def _named(entry: Optional[_Entry]) -> str:
    if entry is None:
        return f"a batch normalisation in {_where()}"
    return f"{entry.name or 'the model'} ({type(entry.module).__name__})"


def refuse_compiled(op: torch._ops.OpOverload, args: Sequence[Any]) -> None:
    """Where torch.compile traces a batch normalisation in training."""
    if op is _batch_norm and args[5]:
        raise RandomnessError(
            f"torch.compile traced a batch normalisation in {_where()} (its groups of samples are not known to compiled "
            "code): leave the modules that hold one uncompiled")


def refuse_compiled_norms(compiled: Sequence[tuple[str, nn.Module]]) -> None:
    """`compiled`: modules of which torch.compile makes code, by name."""
    for path, module in compiled:
        for name, part in module.named_modules():
            if is_grouped(part):
                place = ".".join(filter(None, (path, name)))
                raise RandomnessError(
                    f"{place} ({type(part).__name__}) lies in {path or 'the model'}, of which torch.compile makes code (its "
                    "groups of samples are not known to compiled code): leave the modules that hold one uncompiled")


def without_size_check() -> Callable[[], None]:
    """Lets torch.nn.functional.batch_norm pass single values on, which a group of one sample has; gives what undoes it."""
    original = F._verify_batch_size
    F._verify_batch_size = lambda size: None if scope.active else original(size)

    def undo() -> None:
        F._verify_batch_size = original

    return undo
