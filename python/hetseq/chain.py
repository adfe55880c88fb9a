"""A user's module as a chain of units, which a pipeline cuts over ranks (`Task.chain`).

Its units are what runs before the first block ("front"), each block, and what runs behind the last ("back"). Every stage
runs the user's own forward. There, blocks of stages in front pass on what they are given; the stage's first block gets the
hidden state that was sent in place of its own; and the block behind its last ends the forward: what that is given is sent
on. What runs before a stage's first block, on zeros in place of parameters that the stage lacks, makes the blocks' other
arguments, such as masks. It records nothing, and no gradient flows into it.
"""

from __future__ import annotations

from typing import Any, Callable, Mapping, NamedTuple, Optional, Sequence

import torch
from torch import nn

from .chain_blocks import Block, Outside, divided, hidden_of, listed_blocks, with_hidden
from .chain_sample import Passed, Reads, Sampled, passed_over, without_values
from .draw_places import scope, without_shells
from .group_norms import is_grouped
from .recomputation import Recomputation
from .task import TaskError

__all__ = ["Chain", "Unit"]

Compute = Callable[[bool, Any], list[torch.Tensor]]
"""The sums of the sample: whether it trains, and the pass (`scope.stage`)."""


class Unit(NamedTuple):
    kind: str
    parameters: list[str]
    recomputed: list[int]  # the modules of Task.recompute that run in it


class _Cut(BaseException):
    """Ends a forward where the next stage goes on. No handler of a user's may take it for an error."""

    def __init__(self, hidden: torch.Tensor) -> None:
        self.hidden = hidden


class Chain:
    """`names`: of the lists of blocks. `compute` runs the sample, with the whole module. Raises TaskError where the module
    is no chain of these blocks."""

    def __init__(self, names: Sequence[str], module: nn.Module, handle: Any, recomputation: Recomputation,
                 compute: Compute) -> None:
        self._module, self._handle = module, handle
        found = listed_blocks(module, names, handle.is_compiled)
        self._parameters = [(without_shells(name), parameter) for name, parameter in module.named_parameters()]
        self._own = _own_parameters(found, self._parameters)
        recomputation.check_around([block for _, block in found])
        self._blocks = [Block(index, name, block) for index, (name, block) in enumerate(found)]
        self._outside = self._wrapped_outside()
        self._sampled: dict[bool, Sampled] = {}  # by whether it trains
        self._held: dict[tuple[int, int], set[str]] = {}  # parameters, by the units of a stage
        try:
            self.units = self._find_units(recomputation.modules, compute)
        except BaseException:
            self.remove()
            raise

    def stage(self, begin: int, end: int, carried: Sequence[torch.Tensor]) -> "Stage":
        """A pass of units [begin, end), on the hidden state that the stage in front sent."""
        held = self._held.get((begin, end))
        if held is None:
            held = self._held[begin, end] = {name for unit in self.units[begin:end] for name in unit.parameters}
        return Stage(self._blocks, begin, end, carried[0] if carried else None, held, self._handle, self._sampled)

    def remove(self) -> None:
        """The module's forward is as it was."""
        for wrapper in (*self._blocks, *self._outside):
            wrapper.remove()

    def _wrapped_outside(self) -> list[Outside]:
        blocks = {id(block.module) for block in self._blocks}
        inside = {id(part) for block in self._blocks for part in block.module.modules()}
        names = {id(parameter): name for name, parameter in self._parameters}
        found = []
        for path, part in self._module.named_modules():
            own = [names[id(parameter)] for parameter in part.parameters(recurse=False)]
            if own and id(part) not in inside and not any(id(deeper) in blocks for deeper in part.modules()):
                found.append(Outside(without_shells(path), part, own))
        return found

    def _find_units(self, recomputed: Sequence[nn.Module], compute: Compute) -> list[Unit]:
        reads = [set(names) for names in ([], *self._own, [])]
        modules = [{block.index + 1 for block in self._blocks if block.module is module} for module in recomputed]
        inside = [module for module, units in zip(recomputed, modules) if not units]
        sums = {}
        for trains in (True, False):
            sums[trains], seen = self._sample(trains, compute, inside)
            for unit, names in enumerate(seen):
                reads[unit] |= names
            for units, module in zip(modules, recomputed):
                units |= self._sampled[trains].units_of(module)
        self._check_reads(reads)
        known = set().union(*reads)
        reads[-1] |= {name for name, _ in self._parameters if name not in known}
        for trains in (True, False):
            self._check_cut(trains, compute, sums[trains], reads[-1])
            self._sampled[trains].forget()
        kinds = self._kinds()
        return [Unit(kind, [name for name, _ in self._parameters if name in names],
                     [place for place, units in enumerate(modules) if unit in units])
                for unit, (kind, names) in enumerate(zip(kinds, reads))]

    def _sample(self, trains: bool, compute: Compute, noted: Sequence[nn.Module]) -> tuple[
            list[torch.Tensor], list[set[str]]]:
        reads = Reads(self._parameters, len(self._blocks) + 2)
        sampled = self._sampled[trains] = Sampled(self._blocks, reads, self._handle)
        norms = [part for part in self._module.modules() if is_grouped(part)]
        noted = [*noted, *norms, *(outside.module for outside in self._outside)]
        hooks = [part.register_forward_pre_hook(lambda part, given: sampled.note(part)) for part in noted]
        try:
            with reads:
                sums = [value.detach() for value in compute(trains, sampled)]
        finally:
            for hook in hooks:
                hook.remove()
        sampled.end()
        for part in norms:
            if len(sampled.units_of(part)) > 1:
                raise TaskError(f"a {type(part).__name__} runs in several units of the chain (each stage records the "
                                "statistics of its own calls): give each unit a batch normalisation of its own")
        return sums, reads.units

    def _check_reads(self, reads: Sequence[set[str]]) -> None:
        for index, own in enumerate(self._own):
            for other, names in enumerate(reads[1:-1]):
                if shared := sorted(own & names) if other != index else []:
                    raise TaskError(f"chain names the blocks '{self._blocks[index].name}' and '{self._blocks[other].name}', "
                                    f"which share the parameter '{shared[0]}' (their stages would each train another): give "
                                    "each its own, or train this model without virtual workers")

    def _check_cut(self, trains: bool, compute: Compute, expected: Sequence[torch.Tensor], held: set[str]) -> None:
        """The end of the chain depends on nothing but the last hidden state and what it reads."""
        passed = Passed(self._blocks, self._sampled[trains], held, self._handle)
        with without_values(self._parameters, held):
            try:
                found = compute(trains, passed)
            except TaskError:
                raise
            except Exception as error:
                raise TaskError(f"chain cannot be cut (behind the blocks, the forward fails where a stage has nothing but the "
                                f"last hidden state: {type(error).__name__}: {error}): let no other result of a block or "
                                "of what runs before them be needed there") from error
        if not all(torch.allclose(a.double(), b.detach().double(), rtol=1e-5, atol=1e-30, equal_nan=True)
                   for a, b in zip(expected, found)):
            raise TaskError("chain cannot be cut (behind the blocks, more is needed than the last hidden state, such as "
                            "outputs of earlier blocks, or of what runs before them): let the losses depend on the last "
                            "block's output and the batch alone, or train this model without virtual workers")

    def _kinds(self) -> list[str]:
        """Blocks of one class, one shape of all tensors, and one treatment are of one kind."""
        known: dict[str, list[Any]] = {}
        kinds = []
        for block, call in zip(self._blocks, self._sampled[True].calls):
            shape = [(tuple(p.shape), p.requires_grad) for p in block.module.parameters()], call.shape, call.made_shape
            alike = known.setdefault(type(block.module).__name__, [])
            if shape not in alike:
                alike.append(shape)
            number = alike.index(shape)
            kinds.append(type(block.module).__name__ + (f" {number + 1}" if number else ""))
        return ["front", *kinds, "back"]


def _own_parameters(blocks: Sequence[tuple[str, nn.Module]], parameters: Sequence[tuple[str, nn.Parameter]]) -> list[
        set[str]]:
    names = {id(parameter): name for name, parameter in parameters}
    owners: dict[str, str] = {}
    for path, block in blocks:
        for parameter in block.parameters():
            name = names[id(parameter)]
            if owners.setdefault(name, path) != path:
                raise TaskError(f"chain names the blocks '{owners[name]}' and '{path}', which share the parameter '{name}' "
                                "(their stages would each train another): give each its own, or train this model without "
                                "virtual workers")
    return [{names[id(parameter)] for parameter in block.parameters()} for _, block in blocks]


class Stage:
    """The pass of a stage in one forward. Micro-batches in flight have one each: what is computed again in backward finds
    its own (`randomness._Forward`)."""

    def __init__(self, blocks: Sequence[Block], begin: int, end: int, carried: Optional[torch.Tensor], held: set[str],
                 handle: Any, sampled: Mapping[bool, Sampled]) -> None:
        self._blocks, self._held, self._handle, self._sampled = blocks, held, handle, sampled
        self._carried = carried
        self._first, self._last = max(begin - 1, 0), min(end - 1, len(blocks))  # of its own blocks
        self._units = range(begin, end)
        self._is_front, self._is_back = begin == 0, end == len(blocks) + 2
        self._is_back_alone = begin == len(blocks) + 1
        self._next = 0
        self.stands_in = not self._is_front  # what runs is another stage's too

    def run(self, forward: Callable[..., Any], *args: Any) -> Any:
        """What `forward` gives, or the hidden state for the next stage."""
        try:
            result = forward(*args)
        except _Cut as cut:
            return cut.hidden
        if not self._is_back or self._next < len(self._blocks):
            self._refuse_other_turn("no block was called any more")
        return result

    def block(self, block: Block, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self._check_turn(block)
        call = self._sampled[scope.trains].calls[block.index]
        if block.index == self._last:
            raise _Cut(hidden_of(block, args, kwargs))
        if block.index < self._first:
            return self._pass_over(block, call, args, kwargs)
        if block.index == self._first and not self._is_front:
            self.stands_in = False
            args, kwargs = with_hidden(args, kwargs, self._carried.clone() if call.writes else self._carried)
        result = block.original(*args, **kwargs)
        if block.index + 1 == len(self._blocks) and not self._is_back:
            raise _Cut(divided(block, result)[0])
        return result

    def stands_in_for(self, outside: Outside) -> bool:
        """Whether zeros will do for what a module outside of the blocks gives. Refuses one that the stage should have."""
        if self.stands_in:
            return self._held.isdisjoint(outside.parameters)
        if not scope.replays and not self._held.issuperset(outside.parameters):
            self._check_unit(outside)
        return False

    def _check_unit(self, outside: Outside) -> None:
        ran = set().union(*(sampled.units_of(outside.module) for sampled in self._sampled.values()))
        if not any(unit in self._units for unit in ran):
            raise TaskError(f"'{outside.name}' runs in a unit of the chain in which it did not in the sample at the start (the "
                            "stage lacks its parameters): let no value decide which modules run")

    def _check_turn(self, block: Block) -> None:
        if scope.replays:
            return
        if block.index != self._next:
            self._refuse_other_turn(f"'{block.name}' was called")
        self._next += 1

    def _refuse_other_turn(self, what: str) -> None:
        due = f"it was the turn of '{self._blocks[self._next].name}'" if self._next < len(self._blocks) else "all had run"
        raise TaskError(f"of the blocks that chain names, {what} when {due} (a pipeline passes each once, in the order of "
                        "chain): leave layer drop out, and let no value decide which blocks run")

    def _pass_over(self, block: Block, call: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not scope.replays:
            self._handle.count_calls(self._sampled[scope.trains].shared_calls(block.index))
        if self._is_back_alone and block.index + 1 == len(self._blocks):
            self.stands_in = False
            return call.made.with_hidden(self._carried)
        return call.made.with_hidden(passed_over(call, hidden_of(block, args, kwargs)))
