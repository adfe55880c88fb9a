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
from itertools import accumulate
from typing import Any, Callable, Mapping, Optional, Sequence

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _BatchNorm

from .draw_places import RandomnessError, Record, next_draw, scope
from .norm_by_groups import by_running_statistics, has_too_few, normalised

__all__ = ["BUFFERS", "GroupNorms", "functional", "is_grouped", "refuse_compiled", "without_size_check"]

_batch_norm = torch.ops.aten.batch_norm.default

BUFFERS = ("running_mean", "running_var", "num_batches_tracked")  # of a module, which change with its groups


def is_grouped(module: nn.Module) -> bool:
    """A batch normalisation that looks at other samples in training."""
    return isinstance(module, _BatchNorm) and module.training


class _Entry:
    """A module with running statistics, and its place in the sums of `GroupNorms`."""

    def __init__(self, name: str, module: _BatchNorm, record: Record) -> None:
        self.name, self.module, self.record = name, module, record
        self.channels = module.running_mean.numel()
        # By the module's call and the draw in it: means and variances (groups, 2, channels), or None for a group of which
        # a channel had a single value.
        self.calls: dict[tuple[int, int], Optional[torch.Tensor]] = {}


class _Counts:
    """How often modules normalised groups. Their own counts, which their forwards count up, are as they were after the last
    update, whatever forwards and recomputations came since."""

    def __init__(self) -> None:
        self._after: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}  # by the module: its count, and after the last update

    def settle(self, modules: Sequence[_BatchNorm]) -> None:
        own, after = [], []
        for module in modules:
            count = module.num_batches_tracked
            known = self._after.get(id(module))
            if count is None:
                self._after.pop(id(module), None)
            elif known is None or known[0] is not count:
                self._after[id(module)] = count, count.clone() if known is None else known[1].to(count.device)
            if count is not None and known is not None:
                own.append(count)
                after.append(self._after[id(module)][1])
        if own:
            torch._foreach_copy_(own, after)

    def add(self, modules: Sequence[_BatchNorm], groups: Sequence[int]) -> None:
        counted = [(module, number) for module, number in zip(modules, groups) if id(module) in self._after]
        for module, number in counted:
            self._after[id(module)][1].add_(number)
        self.settle([module for module, _ in counted])

    def before(self, module: _BatchNorm) -> Optional[int]:
        known = self._after.get(id(module))
        return None if known is None else int(known[1])


class GroupNorms:
    """The batch normalisations of a module while it trains. `records`: of its modules, by their id."""

    def __init__(self, model: nn.Module, records: Mapping[int, Record]) -> None:
        self._entries: list[_Entry] = []
        self.exists = False
        for name, module in model.named_modules():
            if not is_grouped(module):
                continue
            self.exists = True
            if module.running_mean is not None:
                self._entries.append(_Entry(name, module, records[id(module)]))
        self._modules = [entry.module for entry in self._entries]
        self._widths = [2 * entry.channels for entry in self._entries]
        self._counts = _Counts()
        self._by_buffer: dict[int, _Entry] = {}
        self._by_stream: dict[int, tuple[_Entry, int]] = {}  # with the number of the module's call
        self.size = sum(self._widths) + len(self._entries)  # of its sums

    def begin(self) -> None:
        """A forward in training begins."""
        self._by_buffer = {id(entry.module.running_mean): entry for entry in self._entries}
        for entry in self._entries:
            entry.calls = {}
        self._counts.settle(self._modules)

    def end(self, sums: Optional[torch.Tensor]) -> None:
        """The forward has ended: adds what it put aside to `sums`, (size): means and variances of each entry, and then the
        number of groups of each, counted as often as they were normalised. None: it does not count."""
        if self._entries and sums is not None and scope.groups is not None:
            self._add(sums, *scope.groups[:2])
        for entry in self._entries:
            entry.calls = {}
        self._counts.settle(self._modules)

    def _add(self, sums: torch.Tensor, first: int, total: int) -> None:
        # Entries of like calls have the same weights. All that happens on the device, without a word of the host.
        alike: dict[tuple[Optional[float], tuple[int, ...]], list[int]] = {}
        for place, entry in enumerate(self._entries):
            groups = tuple(0 if made is None else len(made) for _, made in sorted(entry.calls.items()))
            if sum(groups):
                alike.setdefault((entry.module.momentum, groups), []).append(place)
        places = [0, *accumulate(self._widths)]
        counts = sums[places[-1]:]
        for (momentum, groups), of_entries in alike.items():
            rows = [torch.cat([made.flatten(1) for _, made in sorted(self._entries[place].calls.items()) if made is not None])
                    for place in of_entries]
            weights = torch.cat([self._weights(momentum, first, total, call, len(groups), number, rows[0].device)
                                 for call, number in enumerate(groups) if number])
            added = weights @ torch.cat(rows, 1).double()
            for begin, end in _stretches(of_entries):
                width = places[end] - places[begin]
                sums[places[begin]:places[end]] += added[:width]
                added = added[width:]
                counts[begin:end] += sum(groups)

    @staticmethod
    def _weights(momentum: Optional[float], first: int, total: int, call: int, calls: int, groups: int,
                 device: torch.device) -> torch.Tensor:
        """Of the groups of one call of `calls`: m (1 - m)^(what comes after it), or 1."""
        if momentum is None:
            return torch.ones(groups, dtype=torch.float64, device=device)
        last = total * calls - 1 - (first * calls + call)
        after = torch.arange(last, last - groups * calls, -calls, dtype=torch.float64, device=device)
        return torch.pow(1 - momentum, after) * momentum

    @torch.no_grad()
    def take_sums(self, sums: torch.Tensor) -> None:
        """The sums, (size), are those of all ranks: the buffers take them in."""
        self._counts.settle(self._modules)  # of a rank that has had no forward, too
        places = [0, *accumulate(self._widths)]
        counts = [round(count) for count in sums[places[-1]:].tolist()]
        sums = sums.double()
        taking, buffers, kept, parts = [], [], [], []
        for place, (entry, count) in enumerate(zip(self._entries, counts)):
            module, before = entry.module, self._counts.before(entry.module) if entry.module.momentum is None else 0
            if count == 0 or before is None:  # as PyTorch has it where nothing counts
                continue
            of_entry = sums[places[place]:places[place + 1]]
            if module.momentum is None:  # the mean of all
                old, of_entry = before / (before + count), of_entry / (before + count)
            else:
                old = (1 - module.momentum) ** count
            taking.append(place)
            buffers += [module.running_mean, module.running_var]
            kept += [old, old]
            parts += [of_entry[:entry.channels], of_entry[entry.channels:]]
        if not taking:
            return
        new = torch._foreach_mul([buffer.double() for buffer in buffers], kept)
        torch._foreach_add_(new, parts)
        torch._foreach_copy_(buffers, new)
        self._counts.add([self._modules[place] for place in taking], [counts[place] for place in taking])

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
            self._put_aside(entry, None)
            return by_running_statistics(x, weight, bias, running_mean, running_var, eps)
        out, statistics = normalised(x, weight, bias, sizes, eps)
        self._put_aside(entry, statistics)
        return out

    def begin_compiled(self, x: torch.Tensor, running_mean: Optional[torch.Tensor], stream: torch.Tensor,
                       owner: Optional[torch.Tensor]) -> tuple[Optional[_Entry], list[int]]:
        """Of a batch normalisation in compiled code, where `stream` is of the module that runs: its entry, and the rows of
        each group."""
        self._check()
        entry = self._entry_of(stream)[0] if running_mean is not None else None
        return entry, _sizes(x, entry, owner)

    def put_aside_compiled(self, entry: Optional[_Entry], stream: torch.Tensor, draw: int,
                           statistics: Optional[torch.Tensor]) -> None:
        """The statistics of a call; those of its recomputation are no others."""
        if entry is not None and scope.active and not (scope.replays or _is_stand_in()):
            entry.calls[self._entry_of(stream)[1], draw] = statistics

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

    def _put_aside(self, entry: Optional[_Entry], statistics: Optional[torch.Tensor]) -> None:
        if entry is None:
            return
        record = scope.current
        if record is entry.record:
            place = record.call.number, next_draw()[1]
        else:  # another module uses the buffers
            place = sys.maxsize, len(entry.calls)
        if scope.replays:  # after the end of the forward
            self._counts.settle([entry.module])
        elif not _is_stand_in():
            entry.calls[place] = statistics

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


def _stretches(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Begin and end of each stretch of ascending numbers that follow one another."""
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and found[-1][1] == number:
            found[-1] = found[-1][0], number + 1
        else:
            found.append((number, number + 1))
    return found


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


def _is_stand_in() -> bool:
    """Another stage of a pipeline computes what runs now, and records it."""
    return scope.stage is not None and scope.stage.stands_in


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
