"""Batch normalisation of groups of samples: the arithmetic, for eager and for compiled code (see group_norms.py)."""

from __future__ import annotations

from typing import Any, Optional, Sequence

import torch

from .draw_places import scope

__all__ = ["by_running_statistics", "has_too_few", "norm_by_groups", "normalised"]

_eval_norm = torch.ops.aten.batch_norm.default


def has_too_few(x: torch.Tensor, sizes: Sequence[int]) -> bool:
    """Whether a channel has a single value in a group of `sizes` rows. Such a group is the only one of its batch."""
    return x.numel() // max(1, len(x) * x.shape[1]) * min(sizes) < 2


def by_running_statistics(x: torch.Tensor, weight: Any, bias: Any, mean: Any, variance: Any, eps: float) -> torch.Tensor:
    """For a group of which a channel has a single value."""
    if mean is None:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {tuple(x.shape)}")
    return _eval_norm(x, weight, bias, mean, variance, False, 0.0, eps, False)


def _format(x: torch.Tensor) -> torch.memory_format:
    """That of what PyTorch's own gives."""
    for dimensions, last in ((4, torch.channels_last), (5, torch.channels_last_3d)):
        if x.dim() == dimensions and x.is_contiguous(memory_format=last) and not x.is_contiguous():
            return last
    return torch.contiguous_format


def _statistics_type(x: torch.Tensor) -> torch.dtype:
    return torch.float64 if x.dtype == torch.float64 else torch.float32


def normalised(x: torch.Tensor, weight: Any, bias: Any, sizes: Sequence[int], eps: float
               ) -> tuple[torch.Tensor, torch.Tensor]:
    """x (rows, channels, ...) normalised by groups of `sizes` rows of dimension 0, and means and unbiased variances (groups,
    2, channels). Has gradients."""
    return torch.ops.hetseq.group_norm.default(x, weight, bias, sizes, eps)


# ------ compiled code: operators that torch.compile does not look into. They tell scope.handle.norms of the statistics.


def _forward(x, weight, bias, running_mean, running_var, stream, groups, owner, draw, eps):
    norms = scope.handle.norms
    entry, sizes = norms.begin_compiled(x, running_mean, stream, owner)
    rows = torch.tensor(sizes)
    if has_too_few(x, sizes):
        norms.put_aside_compiled(entry, stream, draw, None)
        nothing = torch.zeros(2, len(sizes), x.shape[1], dtype=_statistics_type(x), device=x.device)
        out = by_running_statistics(x, weight, bias, running_mean, running_var, eps)
        return out, nothing, rows
    out, statistics, saved = torch.ops.hetseq.group_norm_forward.default(x, weight, bias, sizes, eps)
    norms.put_aside_compiled(entry, stream, draw, statistics)
    return out, saved, rows


def _backward(gradient, x, weight, running_mean, running_var, saved, rows, eps):
    sizes = rows.tolist()
    if not has_too_few(x, sizes):
        return torch.ops.hetseq.group_norm_backward.default(gradient, x, weight, sizes, saved, eps)
    return torch.ops.aten.native_batch_norm_backward(
        gradient, x, weight, running_mean, running_var, None, None, False, eps, [True, True, True])


norm_by_groups = torch.library.custom_op(
    "hetseq::norm_by_groups", _forward, mutates_args=(),
    schema="(Tensor x, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, Tensor stream, "
           "Tensor groups, Tensor? owner, int draw, float eps) -> (Tensor, Tensor, Tensor)")
_norm_by_groups_backward = torch.library.custom_op(
    "hetseq::norm_by_groups_backward", _backward, mutates_args=(),
    schema="(Tensor gradient, Tensor x, Tensor? weight, Tensor? running_mean, Tensor? running_var, Tensor saved, "
           "Tensor rows, float eps) -> (Tensor, Tensor, Tensor)")


@norm_by_groups.register_fake
def _(x, weight, bias, running_mean, running_var, stream, groups, owner, draw, eps):
    saved = x.new_empty((2, groups.shape[0], x.shape[1]), dtype=_statistics_type(x))
    return torch.empty_like(x, memory_format=_format(x)), saved, torch.empty_like(groups)


@_norm_by_groups_backward.register_fake
def _(gradient, x, weight, running_mean, running_var, saved, rows, eps):
    of_channels = x.new_empty((x.shape[1],), dtype=_statistics_type(x) if weight is None else weight.dtype)
    return torch.empty_like(x), of_channels, torch.empty_like(of_channels)


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, ...]) -> None:
    x, weight, _, running_mean, running_var, _, _, _, _, ctx.eps = inputs
    ctx.save_for_backward(x, weight, running_mean, running_var, *output[1:])


def _differentiate(ctx: Any, gradient: torch.Tensor, *_: Optional[torch.Tensor]) -> tuple[Any, ...]:
    of_x, of_weight, of_bias = torch.ops.hetseq.norm_by_groups_backward(gradient, *ctx.saved_tensors, ctx.eps)
    needs = ctx.needs_input_grad
    return of_x, of_weight if needs[1] else None, of_bias if needs[2] else None, *[None] * 7


norm_by_groups.register_autograd(_differentiate, setup_context=_save)
