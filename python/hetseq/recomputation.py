"""Modules that backward computes again (`Task.recompute`): forward keeps their inputs alone."""

from __future__ import annotations

import copy
import fnmatch
import functools
from typing import Any, Optional, Sequence

import torch
from torch import nn
from torch.utils import _pytree
from torch.utils.checkpoint import checkpoint

from .draw_places import scope, signature_of, without_shells
from .task import TaskError


class _Recomputed:
    """In the place of a module's `forward`. What it draws is the same each time (randomness.py)."""

    def __init__(self, name: str, module: nn.Module) -> None:
        self.name = name
        self.module = module
        self._parts = list(module.named_modules())
        self._is_checked = False
        self._had_own = "forward" in vars(module)
        self._original = module.forward
        self.__signature__ = signature_of(module.forward)
        self.again = False
        module.__dict__["forward"] = self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not (scope.active and scope.trains):
            return self._original(*args, **kwargs)
        # Whether it is computed again or not: what comes through a cache lies elsewhere and is rounded otherwise.
        args = tuple(map(_without_cache, args))
        kwargs = {name: _without_cache(value) for name, value in kwargs.items()}
        if "use_cache" in kwargs:
            kwargs["use_cache"] = False
        again = self.again and torch.is_grad_enabled()
        if torch.compiler.is_compiling() or self._is_checked and not again:
            return self._run(again, args, kwargs)
        before = self._seen(args, kwargs)
        result = self._run(again, args, kwargs)
        self._is_checked = True
        for what, seen in self._seen(args, kwargs).items():
            if seen != before[what]:
                raise TaskError(f"recompute names '{self.name}', which changes {what}: computed again it would give "
                                "something else. Leave it out of recompute, or let it work on a copy")
        return result

    def _run(self, again: bool, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not again:
            return self._original(*args, **kwargs)
        # Names of arguments may be those of checkpoint's own.
        return checkpoint(functools.partial(self._original, **kwargs), *args, use_reentrant=False)

    def _seen(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """What the module could change, such that it can be compared. Statistics of batch normalisations are hetseq's
        (group_norms.py)."""
        values, form = _pytree.tree_flatten((args, kwargs))
        others = [part for _, part in self._parts if not isinstance(part, nn.modules.batchnorm._BatchNorm)]
        return {"what it is given": (form, [(id(value), getattr(value, "_version", 0)) for value in values]),
                "a buffer of its own": [buffer._version for part in others for buffer in part.buffers(recurse=False)],
                "a number of its own": [(name, key, value) for name, part in self._parts
                                        for key, value in vars(part).items() if isinstance(value, (int, float))]}

    def remove(self) -> None:
        if self._had_own:
            self.module.__dict__["forward"] = self._original
        else:
            self.module.__dict__.pop("forward", None)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """A copied module computes nothing again."""
        return copy.deepcopy(self._original, memo)


def _without_cache(value: Any) -> Any:
    """None for a cache of keys and values of transformers: each call would make it longer. Its own checkpointing leaves
    it out too."""
    return None if hasattr(value, "get_seq_length") else value


class Recomputation:
    """The modules of a model that `patterns` name. `*` stands for anything within one part of a dotted name."""

    def __init__(self, model: nn.Module, patterns: Sequence[str]) -> None:
        modules: dict[str, nn.Module] = {}
        for path, module in model.named_modules():
            modules.setdefault(without_shells(path), module)
        names = [name for name in modules if any(_fits(name, pattern) for pattern in patterns)]
        for pattern in patterns:
            if not any(_fits(name, pattern) for name in names):
                raise TaskError(f"recompute names '{pattern}', which fits no module of the model: it has "
                                f"{_some(modules)}")
        for name in names:
            if isinstance(modules[name], (nn.ModuleList, nn.ModuleDict)):
                raise TaskError(f"recompute names '{name}', a {type(modules[name]).__name__}, which has no forward: name "
                                f"its modules, '{name}.*'")
            if isinstance(modules[name], torch.jit.ScriptModule):
                raise TaskError(f"recompute names '{name}', which is TorchScript: leave it out, or name a module around it")
            outer = next((other for other in names if name.startswith(other + ".")), None)
            if outer is not None:
                raise TaskError(f"recompute names '{outer}' and '{name}', which is a part of it: name one of them")
        self._all = [_Recomputed(name, modules[name]) for name in names]

    def __len__(self) -> int:
        return len(self._all)

    def set(self, count: int, among: Optional[Sequence[int]] = None) -> None:
        """From now on the first `count` of the modules are computed again, or of those at the places `among`."""
        places = list(range(len(self._all)) if among is None else among)[:count]
        for index, module in enumerate(self._all):
            module.again = index in places

    @property
    def modules(self) -> list[nn.Module]:
        return [recomputed.module for recomputed in self._all]

    def check_around(self, blocks: Sequence[nn.Module]) -> None:
        """Refuses a module with one of `blocks`, where stages begin and end, inside."""
        for recomputed in self._all:
            inside = {id(part) for part in recomputed.module.modules() if part is not recomputed.module}
            if any(id(block) in inside for block in blocks):
                raise TaskError(f"recompute names '{recomputed.name}', which holds blocks that chain names (a stage runs some of "
                                "them): name the blocks in recompute, or modules in them")

    def remove(self) -> None:
        for module in self._all:
            module.remove()


def _fits(name: str, pattern: str) -> bool:
    parts, wanted = name.split("."), pattern.split(".")
    return bool(name) and len(parts) == len(wanted) and all(map(fnmatch.fnmatchcase, parts, wanted))


def _some(names: Any, most: int = 8) -> str:
    shown = [name for name in names if name]
    return ", ".join(f"'{name}'" for name in shown[:most]) + (", ..." if len(shown) > most else "")
