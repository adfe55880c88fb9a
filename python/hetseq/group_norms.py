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

import sys
from typing import Any, Callable, Mapping, Optional, Sequence

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _BatchNorm

from .draw_places import RandomnessError, Record, next_draw, scope
from .norm_by_groups import GroupedNorm, by_running_statistics, has_too_few

__all__ = ["BUFFERS", "GroupNorms", "SUMS", "functional", "is_grouped", "refuse_compiled", "without_size_check"]

_batch_norm = torch.ops.aten.batch_norm.default

SUMS = "hetseq.norm_sums"  # the name of the buffer that the trainer sums over ranks
BUFFERS = ("running_mean", "running_var", "num_batches_tracked")  # of a module, which change with its groups


def is_grouped(module: nn.Module) -> bool:
    """A batch normalisation that looks at other samples in training."""
    return isinstance(module, _BatchNorm) and module.training


class _Entry:
    """A module with running statistics, and its place in the sums: channels of means, of variances, and the number of
    groups, each counted as often as it was normalised."""

    def __init__(self, name: str, module: _BatchNorm, record: Record, begin: int) -> None:
        self.name, self.module, self.record, self.begin = name, module, record, begin
        self.channels = module.running_mean.numel()
        self.tracked: Optional[torch.Tensor] = None  # the module's count, which its forward counts up; None: it has none
        # Means and variances (groups, channels) and number of groups, by the module's call and the draw in it.
        self.calls: dict[tuple[int, int], tuple[torch.Tensor, torch.Tensor, int]] = {}

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


class GroupNorms:
    """The batch normalisations of a module while it trains. `records`: of its modules, by their id."""

    def __init__(self, model: nn.Module, records: Mapping[int, Record]) -> None:
        self._entries: list[_Entry] = []
        self.exists = False
        begin = 0
        for name, module in model.named_modules():
            if not is_grouped(module):
                continue
            self.exists = True
            if module.running_mean is not None:
                self._entries.append(_Entry(name, module, records[id(module)], begin))
                begin += self._entries[-1].size
        self._by_buffer: dict[int, _Entry] = {}
        self._by_stream: dict[int, tuple[_Entry, int]] = {}  # with the number of the module's call
        # The trainer moves and converts it with the module's buffers.
        self.sums: Optional[torch.Tensor] = torch.zeros(begin) if begin else None
        self.keeps = False  # the statistics of forwards count

    def begin(self) -> None:
        """A forward in training begins."""
        self._by_buffer = {id(entry.module.running_mean): entry for entry in self._entries}
        for entry in self._entries:
            entry.calls = {}
            entry.settle_count()

    def end(self) -> None:
        """The forward has ended: adds what it put aside to the sums."""
        for entry in self._entries:
            if self.keeps and scope.groups is not None:
                self._add(entry)
            entry.calls = {}
            entry.settle_count()

    def _add(self, entry: _Entry) -> None:
        first, total = scope.groups[:2]
        calls, momentum = len(entry.calls), entry.module.momentum
        sums = self.sums[entry.begin:entry.begin + entry.size]
        for call, (_, (means, variances, groups)) in enumerate(sorted(entry.calls.items())):
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
        sizes = _sizes(x, entry, scope.owner)
        if has_too_few(x, sizes):
            self._put_aside(entry, None, None, 0)
            return by_running_statistics(x, weight, bias, running_mean, running_var, eps)
        out, means, variances = GroupedNorm.apply(x, weight, bias, sizes, eps)
        self._put_aside(entry, means, variances, len(sizes))
        return out

    def begin_compiled(self, x: torch.Tensor, running_mean: Optional[torch.Tensor], stream: torch.Tensor,
                       owner: Optional[torch.Tensor]) -> tuple[Optional[_Entry], list[int]]:
        """Of a batch normalisation in compiled code, where `stream` is of the module that runs: its entry, and the rows of
        each group."""
        self._check()
        entry = self._entry_of(stream)[0] if running_mean is not None else None
        return entry, _sizes(x, entry, owner)

    def put_aside_compiled(self, entry: Optional[_Entry], stream: torch.Tensor, draw: int, means: Any, variances: Any,
                           groups: int) -> None:
        """The statistics of a call; those of its recomputation are no others."""
        if entry is not None and scope.active:
            self._keep(entry, (self._entry_of(stream)[1], draw), means, variances, groups)

    def _entry_of(self, stream: torch.Tensor) -> tuple[_Entry, int]:
        found = self._by_stream.get(int(stream))
        if found is None:
            for entry in self._entries:
                call = entry.record.first
                while call is not None:
                    self._by_stream[int(call.stream)] = entry, call.number
                    call = call.next
            found = self._by_stream.get(int(stream))
        if found is None:
            raise self._keeps_elsewhere()
        return found

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
        record = scope.current
        if record is entry.record:
            place = record.call.number, next_draw()[1]
        else:  # another module uses the buffers
            place = sys.maxsize, len(entry.calls)
        self._keep(entry, place, means, variances, groups)

    @staticmethod
    def _keep(entry: _Entry, place: tuple[int, int], means: Any, variances: Any, groups: int) -> None:
        if not scope.replays:
            entry.calls[place] = means, variances, groups

    def _entry(self, mean: Optional[torch.Tensor]) -> Optional[_Entry]:
        if mean is None:
            return None
        entry = self._by_buffer.get(id(mean))
        if entry is None:
            raise self._keeps_elsewhere()
        return entry

    @staticmethod
    def _keeps_elsewhere() -> RandomnessError:
        return RandomnessError(
            f"a batch normalisation in {_where()} keeps running statistics in a tensor that is no buffer of an "
            "nn.BatchNorm (hetseq folds the statistics of all ranks into these): use nn.BatchNorm1d, 2d or 3d")


def _sizes(x: torch.Tensor, entry: Optional[_Entry], owner: Optional[torch.Tensor]) -> list[int]:
    """Rows of dimension 0 of each group; one group where the trainer only measures time. `owner`: see draw_places.rows."""
    samples = scope.samples
    sizes = scope.groups[2:] if scope.groups is not None else [samples]
    if owner is not None and len(x) == len(owner):
        return _rows_of_groups(x, sizes, entry, owner)
    if samples == 0 or len(x) % samples:
        raise RandomnessError(
            f"{_named(entry)} got a tensor of shape {tuple(x.shape)}, and dimension 0 is not the {samples} samples (it "
            "normalises groups of them, which it divides itself): give it all samples of the micro-batch, (samples, "
            "channels, ...), or say whose its rows are (hetseq.rows)")
    return [size * (len(x) // samples) for size in sizes]


def _rows_of_groups(x: torch.Tensor, sizes: Sequence[int], entry: Optional[_Entry], owner: torch.Tensor) -> list[int]:
    """Of samples with unequal numbers of rows."""
    groups = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))[owner.cpu()]
    if bool((groups[1:] < groups[:-1]).any()):
        raise RandomnessError(
            f"{_named(entry)} got rows that do not follow one another by their samples (it normalises those of a group of "
            "samples together): order them by their owner (hetseq.rows)")
    rows = torch.bincount(groups, minlength=len(sizes)).tolist()
    if len(rows) > 1 and has_too_few(x, rows):
        raise RandomnessError(
            f"{_named(entry)} got {min(rows)} row{'s' * (min(rows) != 1)} of a group of samples (of which a channel tells no "
            "variance; samples of unequal length stand in its order, so that short ones share a group): raise --norm-group, or "
            "leave samples without rows out of the data, so that each group has two rows at least")
    return rows


def _where() -> str:
    return scope.current.name if scope.current is not None else "the task's forward"


def _named(entry: Optional[_Entry]) -> str:
    if entry is None:
        return f"a batch normalisation in {_where()}"
    return f"{entry.name or 'the model'} ({type(entry.module).__name__})"


def refuse_compiled(op: torch._ops.OpOverload, args: Sequence[Any]) -> None:
    """Where torch.compile traces a batch normalisation in training of which no module is known."""
    if op is _batch_norm and args[5]:
        raise RandomnessError(
            f"torch.compile traced a batch normalisation in {_where()} where hetseq can't see which module runs: compile "
            "the module (torch.compile(module) or module.compile()) rather than a function, or leave this part uncompiled")


def functional(input: torch.Tensor, running_mean: Optional[torch.Tensor], running_var: Optional[torch.Tensor],
               weight: Optional[torch.Tensor] = None, bias: Optional[torch.Tensor] = None, training: bool = False,
               momentum: float = 0.1, eps: float = 1e-5) -> torch.Tensor:
    """Stands for torch.nn.functional.batch_norm where torch.compile traces it."""
    if not training or not torch.compiler.is_compiling():
        return F.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)
    stream, draw = next_draw()
    return torch.ops.hetseq.norm_by_groups.default(
        input, weight, bias, running_mean, running_var, stream, scope.group_sizes, scope.owner, draw, eps)[0]


def without_size_check() -> Callable[[], None]:
    """Lets torch.nn.functional.batch_norm pass single values on, which a group of one sample has; gives what undoes it."""
    original = F._verify_batch_size
    F._verify_batch_size = lambda size: None if scope.active else original(size)

    def undo() -> None:
        F._verify_batch_size = original

    return undo
