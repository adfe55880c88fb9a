"""Spectral normalisation (Miyato et al. 2018, "Spectral normalization for generative adversarial networks") once an update.

torch's modules estimate the largest singular value of a weight by a step of power iteration in each forward in training.
So the estimate would depend on the number of micro-batches. Here forwards take the estimate as it is, and each rank makes
the step once an update was applied, with the new weight: what torch computes where each update is one forward.
"""

from __future__ import annotations

from typing import Any, Callable

import torch
from torch import nn
from torch.nn.utils import parametrizations
from torch.nn.utils.spectral_norm import SpectralNorm

__all__ = ["SpectralNorms"]


class _Estimate:
    """Of one weight. `norm`: what makes the step in torch; `step`: makes it with norm's own number of iterations."""

    def __init__(self, norm: Any, step: Callable[[], Any], buffers: list[tuple[nn.Module, str]]) -> None:
        self.norm, self.step, self.buffers = norm, step, buffers
        self.iterations = norm.n_power_iterations


def _parametrized(module: nn.Module, of_weight: Any) -> list[_Estimate]:
    def step(norm: Any) -> None:
        weight = of_weight.original
        for other in of_weight:
            if other is norm:
                break
            weight = other(weight)
        if weight.ndim > 1:  # a vector is normalised exactly
            norm._power_method(norm._reshape_weight_to_matrix(weight), norm.n_power_iterations)

    return [_Estimate(norm, lambda norm=norm: step(norm), [(norm, "_u"), (norm, "_v")])
            for norm in of_weight if isinstance(norm, parametrizations._SpectralNorm)]


def _hooked(module: nn.Module) -> list[_Estimate]:
    return [_Estimate(hook, lambda hook=hook: hook.compute_weight(module, True), [(module, hook.name + "_u"), (module, hook.name + "_v")])
            for hook in module._forward_pre_hooks.values() if isinstance(hook, SpectralNorm)]


class SpectralNorms:
    """Those of a module while it trains."""

    def __init__(self, model: nn.Module) -> None:
        self._estimates: list[_Estimate] = []
        for module in model.modules():
            self._estimates += _hooked(module)
            if isinstance(getattr(module, "parametrizations", None), nn.ModuleDict):
                for of_weight in module.parametrizations.values():
                    self._estimates += _parametrized(module, of_weight)
        self._set(0)

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

    def _set(self, iterations: int) -> None:
        for estimate in self._estimates:
            estimate.norm.n_power_iterations = iterations
