"""What the forwards of an update add up for the task's `after_update`: sums over all samples of the batch and all ranks."""

from __future__ import annotations

import math
from typing import Mapping, Sequence, Union

import torch

from .draw_places import scope
from .task import TaskError

__all__ = ["BatchSums", "TOLD", "add_to_batch_sum"]

TOLD = "batch sum "  # before the name of one that the self-test is told of


class BatchSums:
    """Of a task. `shapes`: of each sum, by name."""

    def __init__(self, shapes: Mapping[str, Sequence[int]]) -> None:
        self._shapes = {name: tuple(shape) for name, shape in shapes.items()}
        self.size = sum(map(math.prod, self._shapes.values()))
        self._of_forward: dict[str, torch.Tensor] = {}

    def begin(self) -> None:
        """A forward in training begins."""
        self._of_forward = {}

    def add(self, name: str, value: torch.Tensor) -> None:
        if name not in self._shapes:
            raise TaskError(f"hetseq.add_to_batch_sum was given '{name}', which the task's batch_sums do not name: add it to "
                            "them with its shape")
        if isinstance(value, (int, float)):
            value = torch.tensor(float(value))
        if not isinstance(value, torch.Tensor) or value.is_complex():
            what = "a complex tensor" if isinstance(value, torch.Tensor) else f"a {type(value).__name__}"
            raise TaskError(f"hetseq.add_to_batch_sum got {what} for '{name}': give a tensor of real numbers, or a number")
        if tuple(value.shape) != self._shapes[name]:
            raise TaskError(f"hetseq.add_to_batch_sum got a tensor of shape {tuple(value.shape)} for '{name}', whose shape in "
                            f"batch_sums is {self._shapes[name]}: sum over the samples, and give one of that shape")
        value = value.detach() if value.dtype in (torch.float32, torch.float64) else value.detach().float()
        before = self._of_forward.get(name)
        self._of_forward[name] = value.clone() if before is None else before.to(value.device) + value

    def give(self, sums: torch.Tensor) -> None:
        """Adds those of the forward to `sums`, (size)."""
        for name, part in self.parts(sums).items():
            if name in self._of_forward:
                part += self._of_forward[name].to(part.device)

    def parts(self, sums: torch.Tensor) -> dict[str, torch.Tensor]:
        """`sums`, (size), as its parts by name."""
        if not self._shapes:
            return {}
        sizes = [math.prod(shape) for shape in self._shapes.values()]
        return {name: part.view(shape) for (name, shape), part in zip(self._shapes.items(), sums.split(sizes))}

    def told(self) -> dict[str, torch.Tensor]:
        """A number for each sum of the forward, in which each element counts otherwise."""
        told = {}
        for name, shape in self._shapes.items():
            value = self._of_forward.get(name, torch.zeros(shape))
            weights = torch.linspace(1, 2, value.numel(), dtype=torch.float64, device=value.device)
            told[TOLD + name] = value.double().flatten() @ weights
        return told


def add_to_batch_sum(name: str, value: Union[torch.Tensor, float]) -> None:
    """Adds `value`, a sum over samples of the micro-batch whose forward runs in training, to the sum of that name over the
    update's whole batch, which the task's `after_update` gets. Its shape is that in the task's `batch_sums`, or it is
    a number where that is (); nothing is differentiated. In evaluation, in recomputation and outside of hetseq nothing happens."""
    if scope.active and scope.trains and not scope.replays:
        scope.handle.sums.batch_sums.add(name, value)
