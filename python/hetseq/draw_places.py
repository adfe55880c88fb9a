"""Where a user's module draws random numbers: the module that runs, the number of its call in a forward, and the number
of the draw in it (see randomness.py)."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import inspect
import itertools
import types
from typing import Any, Callable, Iterator, Optional

import torch
from torch import nn

__all__ = ["Call", "RandomnessError", "Record", "groups", "next_draw", "refuse", "rows", "scope", "signature_of",
           "without_shells"]

_STEP = 0x632BE59BD9B4E019  # between the streams of a module's calls; odd, so they never meet


_SPARE_CALLS = 8  # of a module, more than in the last forward


def without_shells(path: str) -> str:
    """The name of a module or a tensor as it is without torch.compile, whose shells are called _orig_mod."""
    return ".".join(part for part in path.split(".") if part != "_orig_mod")


class RandomnessError(RuntimeError):
    """A random draw that can't be made a function of the sample."""


def refuse(what: str, why: str = "", what_to_do: str = "") -> None:
    where = scope.current.name if scope.current is not None else "the task's forward"
    why = why or "what it draws would depend on how a batch is cut"
    what_to_do = what_to_do or (
        "use dropout, torch.rand, randn, randint, bernoulli or multinomial of shape (samples, ...), "
        "which hetseq makes functions of the sample"
    )
    raise RandomnessError(f"{what} in {where} draws random numbers ({why}): {what_to_do}")


class Scope:
    """The forward that runs now. One at a time in a process, as in the trainer."""

    def __init__(self) -> None:
        self.active = False  # inside a forward, or its recomputation in backward
        self.entered = False  # such a forward was the last to run
        self.current: Record | None = None
        # Of that forward (src/python/forward_scope.hpp). Compiled code takes them as its inputs.
        self.key: torch.Tensor | None = None
        self.ids: torch.Tensor | None = None
        self.samples = 0
        self.owner: torch.Tensor | None = None  # (rows) int64, inside `rows`
        self.groups: list[int] | None = None  # the first one's number, their total, and their sizes
        self.group_sizes: torch.Tensor | None = None  # (groups) int64 on the CPU: samples; compiled code's input
        self.trains = False  # rather than evaluates
        self.replays = False  # it is computed again, in backward
        self.looks_at_groups = True  # the task says so
        self.exact = True  # the task does not say otherwise
        self.predicts = False
        self.stage: Any = None  # the chain.Pass that the forward belongs to; None: it runs as it is
        self.handle: Any = None  # the randomness.Handle that is installed in this process
        self.add_call: Callable[[Record, Call], None] | None = None


scope = Scope()


def _signed(number: int) -> int:
    number &= (1 << 64) - 1
    return number - (1 << 64) if number >> 63 else number


class Call:
    """One call of a module in a forward, and the next. A chain rather than numbers, so that code
    compiled for the first call serves the others."""

    def __init__(self, stream: torch.Tensor, number: int) -> None:
        self.stream = stream  # int64 scalar on the CPU
        self.number = number
        self.next: Call | None = None


class Record:
    """A module's place among the draws of a forward."""

    def __init__(self, path: str, module: nn.Module | None) -> None:
        self.module = module
        self.name = "the task's forward"
        if module is not None:
            self.name = f"{path or 'the model'} ({type(module).__name__})"
        # No path of a module has a dot at its end.
        place = "." if module is None else path
        self.number = int.from_bytes(hashlib.blake2b(place.encode(), digest_size=8).digest(), "little")
        self.first = self._new_call(0)
        # What runs while the module does not: an object of its own, since torch.compile guards on
        # two attributes being the same object. The task's forward always runs.
        self.idle = self.first if module is None else self._new_call(-1)
        self.call = self.idle  # the one that runs
        self.upcoming = self.first
        self.draws = 0  # within the one that runs
        self.original = module.forward if module is not None else None
        self.had_own_forward = module is not None and "forward" in module.__dict__
        # As a function of the class where it is one: torch.compile of torch 2.7 guards on the
        # very object that is called, and a bound method is another one for each module.
        self.of_class = None
        if getattr(self.original, "__self__", None) is module and module is not None:
            self.of_class = self.original.__func__
        self.copied = False

    def _new_call(self, number: int) -> Call:
        stream = _signed(self.number + number * _STEP)
        torch.ops.hetseq.name_stream(stream, self.name, type(self.module) is nn.MultiheadAttention)
        return Call(torch.tensor(stream, dtype=torch.int64, device="cpu"), number)

    def add_call(self, call: Call) -> None:
        call.next = self._new_call(call.number + 1)

    def start(self) -> None:
        """A forward begins. The chain is made long enough for one like the last and more, so that
        compiled code rarely meets its end."""
        call = self.upcoming
        for _ in range(_SPARE_CALLS):
            if call.next is None:
                self.add_call(call)
            call = call.next
        self.upcoming, self.call, self.draws = self.first, self.idle, 0

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        if self.of_class is not None:
            return self.of_class(self.module, *args, **kwargs)
        return self.original(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Stands in for the module's own `forward`."""
        if not scope.active or self.copied:
            if not torch.compiler.is_compiling():
                self._refuse_unknown_recomputation()
            return self._run(*args, **kwargs)
        outer, call, draws = scope.current, self.call, self.draws
        if self.upcoming.next is None:
            scope.add_call(self, self.upcoming)
        scope.current, self.call, self.draws = self, self.upcoming, 0
        self.upcoming = self.upcoming.next
        if torch.compiler.is_compiling():  # a graph can't break inside try
            result = self._run(*args, **kwargs)
            scope.current, self.call, self.draws = outer, call, draws
            return result
        try:
            return self._run(*args, **kwargs)
        finally:
            scope.current, self.call, self.draws = outer, call, draws

    def _refuse_unknown_recomputation(self) -> None:
        if not scope.entered or self.copied or torch._C._current_graph_task_id() == -1:
            return
        raise RandomnessError(
            f"{self.name} runs inside backward (hetseq can't tell which of its calls is computed "
            "again, and its masks must be the same): use torch.utils.checkpoint.checkpoint"
        )

    def install(self) -> None:
        # What generates text looks at the arguments of its own forward.
        generates = hasattr(self.module, "generate") and signature_of(self.original) is not None
        self.module.__dict__["forward"] = _Signed(self) if generates else self.forward

    def remove(self) -> None:
        if self.had_own_forward:
            self.module.__dict__["forward"] = self.original
        else:
            self.module.__dict__.pop("forward", None)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Record":
        """A copied module runs its own `forward`, unkeyed."""
        copied = Record.__new__(Record)
        copied.copied, copied.of_class = True, None
        module = memo.get(id(self.module), self.module)
        copied.original = types.MethodType(type(module).forward, module)
        return copied


def signature_of(function: Any) -> Optional[inspect.Signature]:
    """None for one that tells nothing, as that of a module in TorchScript."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


class _Signed:
    """A record's `forward` with the arguments of the module's own."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self.__signature__ = signature_of(record.original)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._record.forward(*args, **kwargs)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return copy.deepcopy(self._record.forward, memo)


def next_draw() -> tuple[torch.Tensor, int]:
    """The stream of the module that runs, and the number of the draw in it."""
    record = scope.current
    draw = record.draws
    record.draws = draw + 1
    return record.call.stream, draw


@contextlib.contextmanager
def rows(owner: torch.Tensor) -> Iterator[None]:
    """Inside, dimension 0 of what is drawn, dropped out, or normalised over a batch has rows of samples without padding, such
    as the nodes of all graphs of a micro-batch.

    owner: (rows) int64, the place in the micro-batch of the sample that each row belongs to. What is
        drawn is a function of the sample and of the number of the row among those of the sample. A batch normalisation
        takes the rows of a group of samples together, which follow one another.
    """
    if not scope.active:
        yield
        return
    before = scope.ids, scope.owner
    scope.ids, scope.owner = torch.ops.hetseq.ids_of_rows(scope.ids, owner), owner
    try:
        yield
    finally:
        scope.ids, scope.owner = before


def groups(batch: Any = None) -> list[slice]:
    """The groups of the micro-batch whose forward runs, as slices of dimension 0: `--norm-group` consecutive samples of
    the batch each, or a few more, whatever the cut. For a task with `groups = True`. Outside of hetseq all samples of
    `batch` are one group.
    """
    if scope.predicts:
        raise ValueError("hetseq.groups is called in predict, which has no groups (a prediction would depend on how the data "
                         "are cut): predict each sample by itself")
    if scope.active and not scope.looks_at_groups:
        raise ValueError("hetseq.groups is called by a task that does not say groups = True: set it in the task, so that no "
                         "cut divides a group, in a validation neither")
    if not scope.active:
        return [slice(0, len(next(iter(batch.values()))))]
    sizes = scope.groups[2:] if scope.groups is not None else [scope.samples]
    ends = list(itertools.accumulate(sizes))
    return [slice(end - size, end) for size, end in zip(sizes, ends)]
