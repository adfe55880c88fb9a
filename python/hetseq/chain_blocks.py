"""The blocks of a module that is a chain (`Task.chain`): what goes into each and comes out of it."""

from __future__ import annotations

import copy
from typing import Any, Callable, NamedTuple, Optional, Sequence

import torch
from torch import nn
from torch.utils import _pytree

from .draw_places import scope, signature_of, without_shells
from .task import TaskError

__all__ = ["Block", "Made", "Outside", "hidden_of", "divided", "listed_blocks", "made_shape", "others_of", "tensors_in", "with_hidden"]

_HIDDEN = "hidden_states"  # the argument of this name, where none is given by its place


class Block:
    """In the place of a block's `forward`: the pass that runs (`scope.stage`) decides what becomes of the call."""

    def __init__(self, index: int, name: str, module: nn.Module) -> None:
        self.index, self.name, self.module = index, name, module
        self._had_own = "forward" in vars(module)
        self.original = module.forward
        self.__signature__ = signature_of(module.forward)
        module.__dict__["forward"] = self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if scope.stage is None:
            return self.original(*args, **kwargs)
        return scope.stage.block(self, args, kwargs)

    def remove(self) -> None:
        if self._had_own:
            self.module.__dict__["forward"] = self.original
        else:
            self.module.__dict__.pop("forward", None)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """A copied module is whole."""
        return copy.deepcopy(self.original, memo)


class Outside(Block):
    """The same for a module outside of the blocks that has parameters of its own. `parameters`: their names."""

    def __init__(self, name: str, module: nn.Module, parameters: Sequence[str]) -> None:
        super().__init__(-1, name, module)
        self.parameters = parameters

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if scope.stage is not None and scope.stage.stands_in_for(self) and len(args) == 1 and not kwargs:
            shape = made_shape(self.module, args[0])
            if shape is not None:
                return self.module.weight.new_zeros(shape, dtype=_made_type(self.module.weight))
        return self.original(*args, **kwargs)


_CONVOLUTIONS = {nn.Conv1d: 1, nn.Conv2d: 2, nn.Conv3d: 3}


def made_shape(module: nn.Module, x: torch.Tensor) -> Optional[tuple[int, ...]]:
    """Of what the module makes of `x`, where it takes long to compute and is simple to say."""
    if type(module) is nn.Linear:
        return (*x.shape[:-1], module.out_features)
    dimensions = _CONVOLUTIONS.get(type(module))
    if dimensions is None or x.dim() != dimensions + 2:
        return None
    if isinstance(module.padding, str):
        padding = [0 if module.padding == "valid" else dilation * (kernel - 1) / 2
                   for dilation, kernel in zip(module.dilation, module.kernel_size)]
    else:
        padding = module.padding
    sizes = [int(size + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1 for size, pad, dilation, kernel, stride in
             zip(x.shape[2:], padding, module.dilation, module.kernel_size, module.stride)]
    return (len(x), module.out_channels, *sizes)


def _made_type(weight: torch.Tensor) -> torch.dtype:
    device = weight.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else weight.dtype


class Made(NamedTuple):
    """What a block gave, without its hidden state: a tensor alone, or the kind and length of a tuple that begins with
    it."""

    kind: Optional[type]
    length: int = 1

    def with_hidden(self, hidden: torch.Tensor, rest: Optional[Sequence[Any]] = None) -> Any:
        """As the block gives it. What stood behind the hidden state is `rest`, or nothing."""
        if self.kind is None:
            return hidden
        values = [hidden, *([None] * (self.length - 1) if rest is None else rest)]
        return self.kind(*values) if hasattr(self.kind, "_fields") else self.kind(values)


def divided(block: Block, result: Any) -> tuple[torch.Tensor, list[Any], Made]:
    """The hidden state of what a block gave, what stands behind it, and the form of both."""
    if isinstance(result, torch.Tensor):
        hidden, rest, made = result, [], Made(None)
    elif isinstance(result, (tuple, list)) and result and isinstance(result[0], torch.Tensor):
        hidden, rest, made = result[0], list(result[1:]), Made(type(result), len(result))
    else:
        raise TaskError(f"chain names the block '{block.name}', which gives a {type(result).__name__} (stages hand on one "
                        "hidden state): let it give a tensor, or a tuple that begins with it")
    _check(block, hidden)
    return hidden, rest, made


def _check(block: Block, hidden: torch.Tensor) -> None:
    if hidden.is_nested or hidden.layout is not torch.strided:
        raise TaskError(f"chain names the block '{block.name}', whose hidden state is nested or sparse (stages hand on plain "
                        "tensors): use plain ones, such as nn.TransformerEncoder(..., enable_nested_tensor=False)")
    if not hidden.is_floating_point():
        raise TaskError(f"chain names the block '{block.name}', whose hidden state is {hidden.dtype} (gradients come back "
                        "along it): name blocks between which floating-point tensors go")


def hidden_of(block: Block, args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor:
    """The hidden state that a block is given."""
    hidden = args[0] if args else kwargs.get(_HIDDEN)
    if not isinstance(hidden, torch.Tensor):
        raise TaskError(f"chain names the block '{block.name}', which is given a {type(hidden).__name__} (stages hand on one "
                        f"hidden state, the first positional argument or '{_HIDDEN}'): give it so, or name blocks "
                        "between which one tensor goes")
    _check(block, hidden)
    return hidden


def with_hidden(args: tuple[Any, ...], kwargs: dict[str, Any], hidden: torch.Tensor) -> tuple[
        tuple[Any, ...], dict[str, Any]]:
    return ((hidden, *args[1:]), kwargs) if args else (args, {**kwargs, _HIDDEN: hidden})


def others_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """What a block is given beside its hidden state, by name or place."""
    return {**{str(place): value for place, value in enumerate(args) if place > 0},
            **{name: value for name, value in kwargs.items() if args or name != _HIDDEN}}


def tensors_in(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in _pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def listed_blocks(model: nn.Module, names: Sequence[str], whether_compiled: Callable[[nn.Module], bool]) -> list[
        tuple[str, nn.Module]]:
    """The blocks of the lists of these names, in order."""
    modules: dict[str, nn.Module] = {}
    for path, module in model.named_modules():
        modules.setdefault(without_shells(path), module)
        if isinstance(module, torch.jit.ScriptModule) or whether_compiled(module):
            how = "TorchScript" if isinstance(module, torch.jit.ScriptModule) else "compiled by torch.compile"
            raise TaskError(f"'{path or 'the model'}' is {how}, and the model shall be cut at its chain (each stage runs a "
                            "part of the forward, which compiled code cannot): leave it uncompiled, or train without "
                            "virtual workers")
    lists = {path: module for path, module in modules.items()
             if isinstance(module, (nn.ModuleList, nn.Sequential))}
    if "" in lists:
        lists["."] = lists.pop("")
    found: list[tuple[str, nn.Module]] = []
    for name in names:
        if name not in lists:
            what = f"a {type(modules[name]).__name__}" if name in modules else "no module of the model"
            raise TaskError(f"chain names '{name}', which is {what} (stages are cut between the blocks of a list): name an "
                            f"nn.ModuleList or nn.Sequential; the model has {', '.join(map(repr, list(lists)[:8])) or 'none'}")
        if len(lists[name]) == 0:
            raise TaskError(f"chain names '{name}', which is empty (there is nothing to cut): name a list that has blocks")
        found += [(f"{name}.{key}".lstrip("."), block) for key, block in lists[name].named_children()]
        if len(list(lists[name].named_children())) < len(lists[name]):
            _refuse_twice(name)
    if len({id(block) for _, block in found}) < len(found):
        _refuse_twice(names[-1])
    return found


def _refuse_twice(name: str) -> None:
    raise TaskError(f"chain names '{name}', which holds the same block twice (a stage could not hold it alone): give each "
                    "place a block of its own")
