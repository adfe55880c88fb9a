"""Spectral normalisation (Miyato et al. 2018, "Spectral normalization for generative adversarial networks") once an update.

torch's modules estimate the largest singular value of a weight by a step of power iteration in each forward in training.
So the estimate would depend on the number of micro-batches. Here forwards take the estimate as it is, and each rank makes
the step once an update was applied, with the new weight: what torch computes where each update is one forward.
"""

from __future__ import annotations

from typing import Any, Callable

import torch
from torch import nn
from torch.nn.utils import parametrizations, parametrize
from torch.nn.utils.spectral_norm import SpectralNorm

__all__ = ["SpectralNorms"]


class _Estimate:
    """Of one weight. `norm`: what makes the step in torch; `step`: makes it, of norm's own number of iterations."""

    def __init__(self, norm: Any, step: Callable[[], Any]) -> None:
        self.norm, self.step = norm, step
        self.iterations = norm.n_power_iterations


def _parametrized(of_weight: parametrize.ParametrizationList) -> list[_Estimate]:
    def step(norm: Any) -> None:
        names = ["original"] if of_weight.is_tensor else [f"original{i}" for i in range(of_weight.ntensors)]
        made = [getattr(of_weight, name) for name in names]
        for other in of_weight:
            if other is norm:
                break
            made = [other(*made)]
        if made[0].ndim > 1:  # a vector is normalised exactly
            norm._power_method(norm._reshape_weight_to_matrix(made[0]), norm.n_power_iterations)

    return [_Estimate(norm, lambda norm=norm: step(norm)) for norm in of_weight
            if isinstance(norm, parametrizations._SpectralNorm)]


def _hooked(module: nn.Module) -> list[_Estimate]:
    return [_Estimate(hook, lambda hook=hook: hook.compute_weight(module, True)) for hook in module._forward_pre_hooks.values()
            if isinstance(hook, SpectralNorm)]


class SpectralNorms:
    """Those of a module while it trains."""

    def __init__(self, model: nn.Module) -> None:
        self._estimates: list[_Estimate] = []
        for module in model.modules():
            self._estimates += _hooked(module)
            if isinstance(module, parametrize.ParametrizationList):
                self._estimates += _parametrized(module)
        for estimate in self._estimates:
            estimate.norm.n_power_iterations = 0

    @property
    def exists(self) -> bool:
        return bool(self._estimates)

    @torch.no_grad()
    def step(self) -> None:
        """An update was applied."""
        for estimate in self._estimates:
            estimate.norm.n_power_iterations = estimate.iterations
            estimate.step()
            estimate.norm.n_power_iterations = 0

    def remove(self) -> None:
        for estimate in self._estimates:
            estimate.norm.n_power_iterations = estimate.iterations
