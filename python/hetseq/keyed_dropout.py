"""Dropout of every kind, keyed: masks are functions of the sample (see randomness.py)."""

from __future__ import annotations

import math
from typing import Any, Callable, Sequence

import torch
from torch.nn import functional as F

from .draw_places import next_draw, scope

__all__ = ["alpha_dropout", "alpha_dropout_", "attention", "dropout", "dropout_", "feature_alpha_dropout",
           "feature_alpha_dropout_", "feature_dropout", "feature_dropout_", "recurrent"]


def _mask(x: torch.Tensor, p: float, what: str) -> torch.Tensor:
    """Dropout of `x` (samples, ...), or with several rows of each sample one after the other in
    dimension 0, with `p` in (0, 1)."""
    stream, draw = next_draw()
    return torch.ops.hetseq.mask.default(x, p, stream, scope.key, scope.ids, draw, what)


def _dropped(p: float) -> float:
    """The probability that the mask has: a multiple of 2^-16 (see hetseq/model/dropout.hpp)."""
    return 1 - max(1.0, round((1 - p) * 65536)) / 65536


def _checked(p: float) -> float:
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    return p


def _noise(x: torch.Tensor, p: float, per_feature: bool, what: str) -> torch.Tensor:
    """0 or 1 / (1 - p), of x's shape or (samples, features, 1, ...)."""
    shape = x.shape[:2] if per_feature else x.shape
    if per_feature and x.dim() < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    noise = _mask(torch.ones(shape, dtype=x.dtype, device=x.device), p, what)
    return noise.view(shape + (1,) * (x.dim() - 2)) if per_feature else noise


def dropout(x: torch.Tensor, p: float = 0.5, train: bool = True) -> torch.Tensor:
    if not train or _checked(p) == 0 or x.numel() == 0:
        return x
    return x * 0 if p == 1 else _mask(x, p, "dropout")


def dropout_(x: torch.Tensor, p: float = 0.5, train: bool = True) -> torch.Tensor:
    if not train or _checked(p) == 0 or x.numel() == 0:
        return x
    return x.mul_(0) if p == 1 else x.mul_(_noise(x, p, False, "dropout_"))


def feature_dropout(x: torch.Tensor, p: float = 0.5, train: bool = True) -> torch.Tensor:
    if not train or _checked(p) == 0 or x.numel() == 0:
        return x
    return x * 0 if p == 1 else x * _noise(x, p, True, "feature_dropout")


def feature_dropout_(x: torch.Tensor, p: float = 0.5, train: bool = True) -> torch.Tensor:
    if not train or _checked(p) == 0 or x.numel() == 0:
        return x
    return x.mul_(0) if p == 1 else x.mul_(_noise(x, p, True, "feature_dropout_"))


def _alpha_terms(
    x: torch.Tensor, p: float, per_feature: bool, what: str
) -> tuple[torch.Tensor, torch.Tensor]:
    """Factor and addend of alpha dropout (Klambauer et al. 2017, "Self-normalizing neural
    networks", section 3), with torch's constants."""
    alpha = 1.7580993408473766
    kept = (_noise(x, p, per_feature, what) != 0).to(x.dtype)
    p = _dropped(p)
    a = 1 / math.sqrt((alpha * alpha * p + 1) * (1 - p))
    return kept * a, (kept - 1) * (alpha * a) + alpha * a * p


def alpha_dropout(x: torch.Tensor, p: float = 0.5, train: bool = False) -> torch.Tensor:
    if not train or _checked(p) == 0 or x.numel() == 0:
        return x
    if p == 1:
        return x * 0
    factor, addend = _alpha_terms(x, p, False, "alpha_dropout")
    return x * factor + addend


def alpha_dropout_(x: torch.Tensor, p: float = 0.5, train: bool = False) -> torch.Tensor:
    if not train or _checked(p) == 0 or x.numel() == 0:
        return x
    if p == 1:
        return x.mul_(0)
    factor, addend = _alpha_terms(x, p, False, "alpha_dropout_")
    return x.mul_(factor).add_(addend)


def feature_alpha_dropout(x: torch.Tensor, p: float = 0.5, train: bool = False) -> torch.Tensor:
    if not train or _checked(p) == 0 or x.numel() == 0:
        return x
    if p == 1:
        return x * 0
    factor, addend = _alpha_terms(x, p, True, "feature_alpha_dropout")
    return x * factor + addend


def feature_alpha_dropout_(x: torch.Tensor, p: float = 0.5, train: bool = False) -> torch.Tensor:
    if not train or _checked(p) == 0 or x.numel() == 0:
        return x
    if p == 1:
        return x.mul_(0)
    factor, addend = _alpha_terms(x, p, True, "feature_alpha_dropout_")
    return x.mul_(factor).add_(addend)


def attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    """`scaled_dot_product_attention` written out, with keyed dropout of the weights
    (samples, heads, L, S). Without dropout the fused kernels stay."""
    if dropout_p == 0:
        return F.scaled_dot_product_attention(
            query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
        )
    if enable_gqa:
        key = key.repeat_interleave(query.size(-3) // key.size(-3), -3)
        value = value.repeat_interleave(query.size(-3) // value.size(-3), -3)
    if is_causal:
        ones = torch.ones(query.size(-2), key.size(-2), dtype=torch.bool, device=query.device)
        attn_mask = ones.tril()
    # As torch does it: half of the scale on each side keeps the product in range.
    half = math.sqrt(1 / math.sqrt(query.size(-1)) if scale is None else scale)
    scores = torch.matmul(query * half, (key * half).transpose(-2, -1))
    # Autocast has no rule for _safe_softmax, whose gradient torch then refuses on a GPU.
    if torch.is_autocast_enabled(scores.device.type) and scores.dtype in (torch.float16, torch.bfloat16):
        scores = scores.float()
    # By this name torch.compile can trace it, which it cannot by torch._safe_softmax (torch 2.11).
    safe_softmax = torch.ops.aten._safe_softmax.default
    if attn_mask is None:
        weights = torch.softmax(scores, -1)
    elif attn_mask.dtype == torch.bool:
        weights = safe_softmax(scores.masked_fill(attn_mask.logical_not(), -math.inf), -1)
    else:
        weights = safe_softmax(scores + attn_mask, -1)
    weights = weights.to(value.dtype)
    if dropout_p == 1:
        return torch.matmul(weights * 0, value)
    weights = _mask(weights, _checked(dropout_p), "scaled_dot_product_attention")
    return torch.matmul(weights, value)


def recurrent(op: torch._ops.OpOverload) -> Callable[..., Any]:
    """A recurrent network of several layers, layer by layer, with keyed dropout between them. `op`:
    that of torch for all layers, `torch.ops.aten.lstm.input` or one of its kind."""

    def layers(
        input: torch.Tensor,
        hx: Any,
        params: Sequence[torch.Tensor],
        has_biases: bool,
        num_layers: int,
        p: float,
        train: bool,
        bidirectional: bool,
        batch_first: bool,
    ) -> Any:
        states = [hx] if isinstance(hx, torch.Tensor) else list(hx)
        directions, each = 2 if bidirectional else 1, len(params) // num_layers
        lasts = []
        for layer in range(num_layers):
            own = [s[layer * directions : (layer + 1) * directions].contiguous() for s in states]
            weights = params[layer * each : (layer + 1) * each]
            start = own[0] if isinstance(hx, torch.Tensor) else own
            input, *last = op(
                input, start, weights, has_biases, 1, 0.0, train, bidirectional, batch_first
            )
            lasts.append(last)
            if layer + 1 < num_layers and batch_first:
                input = dropout(input, p)
            elif layer + 1 < num_layers:
                input = dropout(input.transpose(0, 1), p).transpose(0, 1)
        return (input, *(torch.cat(of_layers) for of_layers in zip(*lasts)))

    return layers
