"""What a module keeps from one update to the next beside its parameters: running statistics of batch normalisations, estimates
of spectral norms, and what the task's `after_update` writes. Forwards put sums aside, which the trainer sums over ranks with
the gradients; they are taken in once the update is applied."""

from __future__ import annotations

from typing import Mapping, Optional, Sequence

import torch
from torch import nn

from .batch_sums import BatchSums
from .draw_places import Record
from .group_norms import GroupNorms
from .spectral_norms import SpectralNorms

__all__ = ["NAME", "UpdateSums"]

NAME = "hetseq.update_sums"  # of the buffer that the trainer sums over ranks


class UpdateSums:
    """Of a module while it trains. `records`: of its modules, by their id; `shapes`: of the task's sums, by name;
    `has_after_update`: the task changes the module after an update."""

    def __init__(self, model: nn.Module, records: Mapping[int, Record], shapes: Mapping[str, Sequence[int]],
                 has_after_update: bool) -> None:
        self.norms = GroupNorms(model, records)
        self.batch_sums = BatchSums(shapes)
        self.spectral_norms = SpectralNorms(model)
        self.needs_parameters = has_after_update or self.spectral_norms.exists  # those that the update has made
        size = self.norms.size + self.batch_sums.size
        # The trainer moves and converts it with the module's buffers. One element at least says that there is something.
        self.tensor: Optional[torch.Tensor] = torch.zeros(max(size, 1)) if size or self.needs_parameters else None
        self.keeps = False  # the sums of forwards count

    def begin(self) -> None:
        """A forward in training begins."""
        self.norms.begin()
        self.batch_sums.begin()

    def end(self) -> None:
        """The forward has ended."""
        counts = self.keeps and self.tensor is not None
        self.norms.end(self.tensor[:self.norms.size] if counts else None)
        if counts:
            self.batch_sums.give(self._of_task())

    def take(self) -> Mapping[str, torch.Tensor]:
        """The update is applied, and the sums are those of all ranks. Gives those of the task."""
        self.norms.take_sums(self.tensor[:self.norms.size])
        self.spectral_norms.step()
        return self.batch_sums.parts(self._of_task())

    def remove(self) -> None:
        self.spectral_norms.remove()

    def _of_task(self) -> torch.Tensor:
        return self.tensor[self.norms.size:self.norms.size + self.batch_sums.size]
