"""A few samples run through a module that is a chain: they tell which parameters each of its units reads, what its blocks
are given and give, and whether it can be cut between them."""

from __future__ import annotations

import contextlib
from typing import Any, Iterator, NamedTuple, Sequence

import torch
from torch import nn
from torch.utils import _pytree
from torch.utils._python_dispatch import TorchDispatchMode

from .chain_blocks import Block, Made, Outside, divided, hidden_of, others_of, tensors_in, with_hidden
from .task import TaskError

__all__ = ["Call", "Passed", "Reads", "Sampled", "given_up", "without_values"]

_TOLERANCE = 1e-5  # relative; what a stage lacks would change results by their own size


class Call(NamedTuple):
    """What a block was given and gave."""

    shape: torch.Size  # of the hidden state that it was given
    others: dict[str, Any]  # see chain_blocks.others_of; copies, until `Sampled.forget`
    made: Made
    made_shape: torch.Size
    writes: bool  # it changes what it is given, in place
    calls: list[int]  # of the modules that may draw, while it runs


class Reads(TorchDispatchMode):
    """Which parameters each unit reads. `unit`: the one that runs."""

    def __init__(self, parameters: Sequence[tuple[str, nn.Parameter]], units: int) -> None:
        super().__init__()
        self.unit = 0
        self.units: list[set[str]] = [set() for _ in range(units)]
        self._places: dict[int, list[tuple[int, int, str]]] = {}  # by the memory: begin, end and name of each in it
        for name, parameter in parameters:
            begin = parameter.storage_offset()
            self._places.setdefault(_memory(parameter), []).append((begin, begin + parameter.numel(), name))

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        for tensor in tensors_in((args, kwargs or {})):
            if places := self._places.get(_memory(tensor)):
                offset = tensor.storage_offset()
                self.units[self.unit].update(name for begin, end, name in places if begin <= offset < end)
        return func(*args, **(kwargs or {}))


def _memory(tensor: torch.Tensor) -> int:
    try:
        return tensor.untyped_storage()._cdata
    except (RuntimeError, NotImplementedError):  # such as a sparse one
        return 0


class Sampled:
    """The pass of the whole module. Each block begins a graph of its own: activations of one at a time have memory."""

    stands_in = False

    def __init__(self, blocks: Sequence[Block], reads: Reads, handle: Any) -> None:
        self._blocks, self._reads, self._handle = blocks, reads, handle
        self.calls: list[Call] = []
        self.last: torch.Tensor | None = None  # the hidden state behind the last block
        self._shared: list[list[tuple[int, int]]] = []  # see `shared_calls`
        self._copies: dict[int, tuple[torch.Tensor, int, torch.Tensor]] = {}  # by the id of a tensor: it and its version
        self._seen_in: dict[int, set[int]] = {}  # the units in which a module outside the blocks ran, by its id

    def units_of(self, module: nn.Module) -> set[int]:
        return self._seen_in.get(id(module), set())

    def note(self, module: nn.Module) -> None:
        self._seen_in.setdefault(id(module), set()).add(self._reads.unit)

    def stands_in_for(self, outside: Outside) -> bool:
        return False

    def block(self, block: Block, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self._check_turn(block)
        hidden, others = hidden_of(block, args, kwargs), others_of(args, kwargs)
        self._check_gradients(block, hidden, others)
        others = {name: _pytree.tree_map(self._copied, value) for name, value in others.items()}
        self._reads.unit = block.index + 1
        before, version = self._handle.calls(), hidden._version
        result, rest, made = divided(block, block.original(*args, **kwargs))
        writes, counts = hidden._version != version, self._calls_since(before)
        self.calls.append(Call(hidden.shape, others, made, result.shape, writes, counts))
        if block.index + 1 == len(self._blocks):
            self._reads.unit = block.index + 2
            self.last = result.detach().requires_grad_(result.requires_grad)
        apart = result.detach().requires_grad_(result.requires_grad).clone()
        return made.with_hidden(apart, rest)

    def end(self) -> None:
        """The forward has ended."""
        self._copies = {}
        everywhere = self._handle.calls()
        self._shared = [[(place, number) for place, number in enumerate(call.calls) if 0 < number < everywhere[place]]
                        for call in self.calls]
        if len(self.calls) < len(self._blocks):
            raise TaskError(f"chain names the block '{self._blocks[len(self.calls)].name}', which is not called in a forward "
                            "(the stage that holds it would wait for its turn for ever): name lists whose blocks all run, "
                            "and leave layer drop out")

    def shared_calls(self, index: int) -> list[tuple[int, int]]:
        """How often modules run in block `index` that run elsewhere too, and count their calls (`Handle.count_calls`)."""
        return self._shared[index]

    def forget(self) -> None:
        """Drops the tensors of the sample, once the cut has been looked at."""
        self.calls = [call._replace(others={}) for call in self.calls]
        self.last = None

    def _copied(self, leaf: Any) -> Any:
        """Blocks mostly share what they are given: one copy will do."""
        if not isinstance(leaf, torch.Tensor):
            return leaf
        known = self._copies.get(id(leaf))
        if known is None or known[1] != leaf._version:
            known = self._copies[id(leaf)] = leaf, leaf._version, leaf.detach().clone()
        return known[2]

    def _calls_since(self, before: list[int]) -> list[int]:
        return [after - number for number, after in zip(before, self._handle.calls())]

    def _check_turn(self, block: Block) -> None:
        if block.index < len(self.calls):
            raise TaskError(f"chain names the block '{block.name}', which is called more than once in a forward, or behind "
                            "later ones (a pipeline passes each block once): name lists whose blocks run once and in order")
        if block.index > len(self.calls):
            raise TaskError(f"chain names the block '{block.name}', which is called before '{self._blocks[len(self.calls)].name}' "
                            "(a pipeline passes blocks in the order of chain): name lists whose blocks run once and in "
                            "order, and leave layer drop out")

    @staticmethod
    def _check_gradients(block: Block, hidden: torch.Tensor, others: dict[str, Any]) -> None:
        if hidden.requires_grad and not torch.is_grad_enabled():
            raise TaskError(f"chain names the block '{block.name}', which runs under torch.no_grad() or reentrant checkpointing "
                            "(no gradient would come back to the stage in front): use checkpoint(..., use_reentrant=False), or "
                            "recompute in the task")
        for name, value in others.items():
            if any(tensor.requires_grad for tensor in tensors_in(value)):
                raise TaskError(f"chain names the block '{block.name}', whose argument {_argument(name)} depends on parameters "
                                "that train (gradients go back along the hidden state alone): compute it inside the "
                                "block, or train this model without virtual workers")


def _argument(name: str) -> str:
    return f"number {int(name) + 1}" if name.isdigit() else f"'{name}'"


class Passed:
    """The pass of a stage that holds the end of the chain alone, by which it is seen whether a module can be cut: blocks
    pass on what they are given, and the last one gives what it gave in `sampled`. `held`: the parameters that it has."""

    def __init__(self, blocks: Sequence[Block], sampled: Sampled, held: set[str], handle: Any) -> None:
        self._blocks, self._sampled, self._held, self._handle = blocks, sampled, held, handle
        self._next = 0
        self.stands_in = True

    def stands_in_for(self, outside: Outside) -> bool:
        return self.stands_in and self._held.isdisjoint(outside.parameters)

    def block(self, block: Block, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if block.index != self._next:
            raise TaskError(f"chain names the block '{block.name}', which is called before "
                            f"'{self._blocks[self._next].name}' where that gives other values (a pipeline passes each block "
                            "once, in the order of chain): let no value of a hidden state decide what runs")
        self._next += 1
        call = self._sampled.calls[block.index]
        self._compare(block, call.others, others_of(args, kwargs))
        self._handle.count_calls(self._sampled.shared_calls(block.index))
        if block.index + 1 == len(self._blocks):
            self.stands_in = False
            return call.made.with_hidden(self._sampled.last.clone())
        return call.made.with_hidden(passed_over(call, hidden_of(block, args, kwargs)))

    @staticmethod
    def _compare(block: Block, expected: dict[str, Any], found: dict[str, Any]) -> None:
        for name in expected.keys() | found.keys():
            if not _alike(expected.get(name), found.get(name)):
                raise TaskError(f"chain names the block '{block.name}', whose argument {_argument(name)} depends on earlier "
                                "blocks or on parameters in front of them (a stage that lacks these cannot compute it): "
                                "compute it inside the block, or train this model without virtual workers")


def passed_over(call: Call, hidden: torch.Tensor) -> torch.Tensor:
    """In the place of what another stage's block would give: `hidden`, or zeros of the shape that it would have."""
    if len(call.shape) != len(call.made_shape):
        return hidden
    sizes = [size * made // given if given else made
             for size, given, made in zip(hidden.shape, call.shape, call.made_shape)]
    return hidden if list(hidden.shape) == sizes else hidden.new_zeros(sizes)


def _alike(a: Any, b: Any) -> bool:
    first, form = _pytree.tree_flatten(a)
    second, other = _pytree.tree_flatten(b)
    return form == other and all(map(_same, first, second))


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        if a.shape != b.shape or a.dtype != b.dtype:
            return False
        if not a.is_floating_point():
            return torch.equal(a, b)
        return torch.allclose(a, b, rtol=_TOLERANCE, atol=_TOLERANCE, equal_nan=True)
    if isinstance(a, torch.Tensor) or isinstance(b, torch.Tensor) or (a is None) != (b is None):
        return False
    return a == b if isinstance(a, (int, float, str)) else type(a) is type(b)


def given_up(parameter: torch.Tensor) -> bool:
    """The trainer has taken the memory of all but one of its elements."""
    return parameter.numel() > 1 and parameter.untyped_storage().nbytes() < parameter.numel() * parameter.element_size()


@contextlib.contextmanager
def without_values(parameters: Sequence[tuple[str, nn.Parameter]], held: set[str]) -> Iterator[None]:
    """Those that are not `held` are zeros meanwhile, as they are in a stage that lacks them."""
    values = [(parameter, parameter.data) for name, parameter in parameters if name not in held]
    try:
        for parameter, value in values:
            parameter.data = value.new_zeros(()).expand(value.shape)
        yield
    finally:
        for parameter, value in values:
            parameter.data = value
