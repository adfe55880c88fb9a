"""Modules that backward computes again (`Task.recompute`): forward keeps their inputs alone."""

from __future__ import annotations

import copy
import fnmatch
from typing import Any, Sequence

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from .draw_places import scope, without_shells
from .task import TaskError


class _Recomputed:
    """In the place of a module's `forward`. What it draws is the same each time (randomness.py)."""

    def __init__(self, module: nn.Module) -> None:
        self._module = module
        self._had_own = "forward" in vars(module)
        self._original = module.forward
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
        if not (self.again and torch.is_grad_enabled()):
            return self._original(*args, **kwargs)
        return checkpoint(self._original, *args, use_reentrant=False, **kwargs)

    def remove(self) -> None:
        if self._had_own:
            self._module.__dict__["forward"] = self._original
        else:
            self._module.__dict__.pop("forward", None)

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
            outer = next((other for other in names if name.startswith(other + ".")), None)
            if outer is not None:
                raise TaskError(f"recompute names '{outer}' and '{name}', which is a part of it: name one of them")
        self._all = [_Recomputed(modules[name]) for name in names]

    def __len__(self) -> int:
        return len(self._all)

    def set(self, count: int) -> None:
        """From now on the first `count` of the modules are computed again."""
        for index, module in enumerate(self._all):
            module.again = index < count

    def remove(self) -> None:
        for module in self._all:
            module.remove()


def _fits(name: str, pattern: str) -> bool:
    parts, wanted = name.split("."), pattern.split(".")
    return bool(name) and len(parts) == len(wanted) and all(map(fnmatch.fnmatchcase, parts, wanted))


def _some(names: Any, most: int = 8) -> str:
    shown = [name for name in names if name]
    return ", ".join(f"'{name}'" for name in shown[:most]) + (", ..." if len(shown) > most else "")
