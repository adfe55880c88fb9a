"""PyTorch's optimizers as the trainer uses them: steps by its learning rate, state as plain tensors."""

from __future__ import annotations

from typing import Any, Callable, Sequence

import torch

from .task import TaskError

Groups = list[dict[str, Any]]


def _groups(tensors: Sequence[torch.Tensor], factors: Sequence[float], decays: Sequence[bool], lr: float) -> Groups:
    """Parameters of like treatment together, as torch.optim takes them."""
    groups: dict[tuple[float, bool], dict[str, Any]] = {}
    for tensor, factor, decay in zip(tensors, factors, decays):
        group = {"params": [], "lr": lr * factor, "lr_factor": factor}
        if not decay:
            group["weight_decay"] = 0.0
        groups.setdefault((factor, decay), group)["params"].append(tensor)
    return list(groups.values())


class Adapter:
    """An optimizer of torch whose state lies in tensors that exist from the start: `state`, by "NAME/PARAMETER"."""

    def __init__(self, make: Callable[[Groups, float], torch.optim.Optimizer], names: Sequence[str],
                 tensors: Sequence[torch.Tensor], factors: Sequence[float], decays: Sequence[bool], lr: float):
        lr = lr or 1.0  # the trainer sets each step's own
        self.optimizer = make(_groups(tensors, factors, decays, lr), lr)
        if not isinstance(self.optimizer, torch.optim.Optimizer):
            raise TaskError(f"optimizer gave a {type(self.optimizer).__name__}, not a torch.optim.Optimizer")
        self.parameters = dict(zip(names, tensors))
        self.stepped = torch.zeros((), dtype=torch.int64)
        self.numbers: set[tuple[str, str]] = set()
        self.state = {"stepped": self.stepped}
        for name, state in self._probed(make, factors, decays, lr).items():
            for key, value in state.items():
                self.state[f"{key}/{name}"] = self._storage(name, key, value)

    def _probed(self, make: Callable[..., Any], factors: Sequence[float], decays: Sequence[bool],
                lr: float) -> dict[str, dict[str, Any]]:
        """What state a step makes, by parameter: seen on copies."""
        copies = [torch.nn.Parameter(tensor.detach().clone()) for tensor in self.parameters.values()]
        for copy in copies:
            copy.grad = torch.zeros_like(copy)
        probe = make(_groups(copies, factors, decays, lr), lr)
        probe.step()
        return {name: dict(probe.state.get(copy, {})) for name, copy in zip(self.parameters, copies)}

    def _storage(self, name: str, key: str, value: Any) -> torch.Tensor:
        if isinstance(value, torch.Tensor):
            return torch.zeros_like(value)
        if isinstance(value, (int, float)):
            self.numbers.add((name, key))
            return torch.zeros((), dtype=torch.float64)
        raise TaskError(f"the optimizer keeps '{key}' of '{name}' as a {type(value).__name__}: only tensors and numbers "
                        "can be in a checkpoint")

    def step(self, lr: float) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = lr * group["lr_factor"]
        self.optimizer.step()
        for name, parameter in self.parameters.items():
            state = self.optimizer.state.get(parameter, {})
            for key, value in state.items():
                storage = self.state.get(f"{key}/{name}")
                if storage is None:
                    raise TaskError(f"the optimizer began to keep '{key}' of '{name}' after its first step")
                if (name, key) in self.numbers:
                    storage.fill_(value)
                elif value is not storage:
                    storage.copy_(value)
                    state[key] = storage
        self.stepped.fill_(1)

    def restored(self) -> None:
        """The tensors of `state` have other values now."""
        self.optimizer.state.clear()
        if not self.stepped.item():
            return
        for path, storage in self.state.items():
            key, slash, name = path.partition("/")
            if not slash:
                continue
            is_number = (name, key) in self.numbers
            value = storage.item() if is_number else storage
            self.optimizer.state[self.parameters[name]][key] = int(value) if is_number and value == int(value) else value
