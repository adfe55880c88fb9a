"""Sums of losses and gradients over the samples of a part of a batch, and how far two of them are apart."""

from __future__ import annotations

from typing import Mapping

import torch

__all__ = ["Gap", "Sums", "dense", "gaps", "numbers"]


class Sums:
    """Losses and gradients, summed over the samples."""

    def __init__(self, losses: dict[str, float], gradients: dict[str, torch.Tensor]) -> None:
        self.losses = losses
        self.gradients = gradients
        self.sizes = {name: abs(value) for name, value in losses.items()}  # before anything cancels

    def add(self, other: "Sums") -> None:
        for name, value in other.losses.items():
            self.losses[name] = self.losses.get(name, 0.0) + value
            self.sizes[name] = self.sizes.get(name, 0.0) + abs(value)
        for name, gradient in other.gradients.items():
            if name in self.gradients:
                self.gradients[name] += gradient
            else:
                self.gradients[name] = gradient


class Gap:
    """What differs most between two sums of the same samples."""

    def __init__(self, kind: str, name: str, size: float, text: str) -> None:
        self.kind, self.name, self.size, self.text = kind, name, size, text


def gaps(a: Sums, b: Sums, how: str, tolerance: float) -> list[Gap]:
    """What differs by more than `tolerance` of what was summed, or of the largest gradient."""
    found = []
    for name, loss in a.losses.items():
        size = abs(loss - b.losses[name])
        if not size <= tolerance * max(a.sizes[name], b.sizes[name], 1e-30):
            found.append(Gap("loss", name, size, f"'{name}': {loss:.9g} whole, {b.losses[name]:.9g} {how}"))
    largest = max((float(g.abs().max()) for g in a.gradients.values() if g.numel()), default=0.0)
    for name in sorted(a.gradients.keys() | b.gradients.keys()):
        have = [s.gradients.get(name) for s in (a, b)]
        one, other = (torch.zeros_like(have[1 - i]) if have[i] is None else have[i] for i in (0, 1))
        worst = float((one - other).abs().max()) if one.numel() else 0.0
        if not worst <= tolerance * max(largest, 1e-30):
            found.append(Gap("gradient", name, worst, f"gradient of {name}: {worst:.3g} apart whole and {how}, the "
                             f"largest gradient is {largest:.3g}"))
    return found


def dense(gradient: torch.Tensor) -> torch.Tensor:
    return gradient.to_dense() if gradient.is_sparse else gradient


def numbers(sums: Mapping[str, torch.Tensor]) -> dict[str, float]:
    return {name: float(value.detach()) for name, value in sums.items()}
