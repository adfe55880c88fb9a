"""What a user's module draws itself, keyed: numbers are functions of the sample (see randomness.py).

Each function stands for the one of torch of its name. Where torch's own takes a generator, none may be given.
"""

from __future__ import annotations

import math
from typing import Any, Sequence

import torch

from .draw_places import next_draw, refuse, scope

__all__ = ["bernoulli", "bernoulli_", "cauchy_", "exponential_", "geometric_", "gumbel_softmax", "log_normal_",
           "multinomial", "normal", "normal_", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like",
           "randperm", "random_", "random_from", "random_to", "rrelu", "rrelu_", "uniform_"]


def _numbers(like: torch.Tensor, kind: str, what: str, generator: Any = None) -> torch.Tensor:
    """Of the shape of `like`: (samples, ...), or one number for all samples, (), (1), (1, 1) and so on. `kind`: see
    src/python/keyed_noise.cpp."""
    if generator is not None:
        refuse(f"torch.{what}", "by a generator of its own, which knows no samples", "leave the generator out")
    if like.is_complex():
        refuse(f"torch.{what}", "complex ones", "draw the real and the imaginary part (torch.complex)")
    stream, draw = next_draw()
    return torch.ops.hetseq.numbers.default(like.detach(), kind, stream, scope.key, scope.ids, draw, what)


def _given(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _empty(*size: Any, what: str, out: Any = None, **options: Any) -> torch.Tensor:
    if out is not None:
        refuse(f"torch.{what}", "into a tensor that is given", "leave out= out")
    return torch.empty(*size, **_given(options))


def randperm(n: int, *, generator: Any = None, dtype: torch.dtype = torch.int64, device: Any = None, **_: Any) -> torch.Tensor:
    """An order of the samples of the micro-batch, for a task that is not exact: by a number that each draws."""
    if scope.exact or n != scope.samples:
        why, others = ("an order of the samples of a micro-batch, which depends on how a batch is cut",
                       ", or say exact = False in the task") if scope.exact else (
                       f"an order of {n}, and not of the micro-batch's {scope.samples} samples", "")
        refuse("torch.randperm", why, "sort torch.rand(samples) within each of hetseq.groups(batch), or let each sample be made "
               f"of itself alone{others}")
    return rand(n, 1, generator=generator, dtype=torch.float64, device=device).flatten().argsort().to(dtype)


# Uniform


def rand(*size: Any, generator: Any = None, **options: Any) -> torch.Tensor:
    return _numbers(_empty(*size, what="rand", **options), "uniform", "rand", generator)


def rand_like(x: torch.Tensor, *, generator: Any = None, **options: Any) -> torch.Tensor:
    return _numbers(torch.empty_like(x.detach(), **_given(options)), "uniform", "rand_like", generator)


def uniform_(x: torch.Tensor, from_: float = 0.0, to: float = 1.0, *, generator: Any = None) -> torch.Tensor:
    return x.copy_(_numbers(x, "uniform", "uniform_", generator) * (to - from_) + from_)


def _flips(like: torch.Tensor, p: Any, what: str, generator: Any) -> torch.Tensor:
    """1 with probability `p`, a number or a tensor, else 0; of the shape and type of `like`."""
    drawn = torch.empty(like.shape, dtype=torch.float32, device=like.device)
    return (_numbers(drawn, "uniform", what, generator) < p).to(like.dtype)


def bernoulli(x: torch.Tensor, p: Any = None, *, generator: Any = None) -> torch.Tensor:
    return _flips(x.detach(), x.detach() if p is None else p, "bernoulli", generator)


def bernoulli_(x: torch.Tensor, p: Any = 0.5, *, generator: Any = None) -> torch.Tensor:
    return x.copy_(_flips(x.detach(), p, "bernoulli_", generator))


# Normal


def randn(*size: Any, generator: Any = None, **options: Any) -> torch.Tensor:
    return _numbers(_empty(*size, what="randn", **options), "normal", "randn", generator)


def randn_like(x: torch.Tensor, *, generator: Any = None, **options: Any) -> torch.Tensor:
    return _numbers(torch.empty_like(x.detach(), **_given(options)), "normal", "randn_like", generator)


def normal_(x: torch.Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Any = None) -> torch.Tensor:
    return x.copy_(_numbers(x, "normal", "normal_", generator) * std + mean)


def normal(mean: Any, std: Any = 1.0, size: Any = None, *, generator: Any = None, **options: Any) -> torch.Tensor:
    """Of the shape `size`, or that of the tensors among `mean` and `std`."""
    tensors = [given.detach() for given in (mean, std) if isinstance(given, torch.Tensor)]
    if size is not None:
        like = _empty(size, what="normal", **options)
    else:
        shape = torch.broadcast_shapes(*(tensor.shape for tensor in tensors))
        like = torch.empty(shape, dtype=tensors[0].dtype, device=tensors[0].device)
    drawn = _numbers(like, "normal", "normal", generator)
    if isinstance(std, torch.Tensor):
        std = std.detach()
    if isinstance(mean, torch.Tensor):
        mean = mean.detach()
    return drawn * std + mean


def log_normal_(x: torch.Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Any = None) -> torch.Tensor:
    return x.copy_((_numbers(x, "normal", "log_normal_", generator) * std + mean).exp())


# By the inverse of the distribution, from fractions in (0, 1) of fp64


def _fractions(like: torch.Tensor, what: str, generator: Any) -> torch.Tensor:
    return _numbers(like, "fraction", what, generator)


def exponential_(x: torch.Tensor, lambd: float = 1.0, *, generator: Any = None) -> torch.Tensor:
    return x.copy_(_fractions(x, "exponential_", generator).log() / -lambd)


def geometric_(x: torch.Tensor, p: float, *, generator: Any = None) -> torch.Tensor:
    if p == 1:
        return x.fill_(1)
    drawn = _fractions(x, "geometric_", generator).log() / math.log1p(-p)
    return x.copy_(drawn.ceil().clamp(min=1))


def cauchy_(x: torch.Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Any = None) -> torch.Tensor:
    drawn = (_fractions(x, "cauchy_", generator) - 0.5) * math.pi
    return x.copy_(drawn.tan() * sigma + median)


def _integers(like: torch.Tensor, low: int, high: int, what: str, generator: Any) -> torch.Tensor:
    """In [low, high), int64, of the shape of `like`."""
    if not low < high:
        raise RuntimeError(f"{what} expects 'from' < 'to', but got from={low} >= to={high}")
    drawn = _fractions(like, what, generator) * (high - low)
    return drawn.floor().to(torch.int64).clamp(max=high - low - 1) + low


def randint(*arguments: Any, generator: Any = None, dtype: Any = None, **options: Any) -> torch.Tensor:
    """randint(high, size), randint(low, high, size), or some of these by name."""
    given = {name: options.pop(name) for name in ("low", "high", "size") if name in options}
    names = [name for name in ("low", "high", "size") if name not in given]
    if len(arguments) < len(names):  # low is 0 where it is left out
        names.remove("low")
        given["low"] = 0
    given.update(zip(names, arguments))
    like = _empty(given["size"], what="randint", dtype=torch.float64, **options)
    drawn = _integers(like, given["low"], given["high"], "randint", generator)
    return drawn.to(torch.int64 if dtype is None else dtype)


def randint_like(
    x: torch.Tensor, *bounds: int, generator: Any = None, dtype: Any = None, **options: Any
) -> torch.Tensor:
    """randint_like(x, high) or randint_like(x, low, high), or these by name."""
    high = options.pop("high", bounds[-1] if bounds else None)
    low = options.pop("low", bounds[0] if len(bounds) > 1 else 0)
    like = torch.empty_like(x.detach(), **_given(options))
    return _integers(like, int(low), int(high), "randint_like", generator).to(dtype or x.dtype)


def random_from(x: torch.Tensor, from_: int, to: Any = None, *, generator: Any = None) -> torch.Tensor:
    if to is None:
        refuse("torch.random_", "without bounds", "use torch.randint")
    return x.copy_(_integers(x, from_, to, "random_", generator))


def random_to(x: torch.Tensor, to: int, *, generator: Any = None) -> torch.Tensor:
    return random_from(x, 0, to, generator=generator)


def random_(x: torch.Tensor, *bounds: int, generator: Any = None, **named: Any) -> torch.Tensor:
    """random_(to), random_(from, to)."""
    to = named.get("to", bounds[-1] if bounds else None)
    return random_from(x, named.get("from", bounds[0] if len(bounds) > 1 else 0), to, generator=generator)


def _check_probabilities(p: torch.Tensor) -> None:
    if torch.compiler.is_compiling() or not p.device.type == "cpu":
        return
    if not bool(torch.isfinite(p).all()) or bool((p < 0).any()):
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if p.numel() and not bool((p.sum(-1) > 0).all()):
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")


def multinomial(
    p: torch.Tensor, num_samples: int, replacement: bool = False, *, generator: Any = None, out: Any = None
) -> torch.Tensor:
    """Of probabilities (samples, categories): by an exponential race without replacement (Efraimidis & Spirakis 2006,
    "Weighted random sampling with a reservoir"), else by the inverse of the sums. Of (categories), with replacement:
    `num_samples` is the number of samples."""
    if out is not None:
        refuse("torch.multinomial", "into a tensor that is given", "leave out= out")
    p = p.detach().double()
    _check_probabilities(p)
    if p.dim() == 1 and not replacement and num_samples > 1:
        refuse("torch.multinomial", "from one list without replacement, so that the samples' draws depend on each other",
               "give replacement=True, or probabilities of shape (samples, categories)")
    if p.dim() == 2 and not replacement:
        arrivals = -_fractions(p, "multinomial", generator).log()
        return (p / arrivals).topk(num_samples, -1).indices
    drawn = _fractions(p.new_empty((*p.shape[:-1], num_samples)), "multinomial", generator)
    sums = p.cumsum(-1)
    found = torch.searchsorted(sums, drawn * sums[..., -1:], right=True)
    return torch.minimum(found, (p > 0).long().cumsum(-1).argmax(-1, keepdim=True))


def gumbel_softmax(
    logits: torch.Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> torch.Tensor:
    """As torch.nn.functional has it."""
    gumbels = -exponential_(torch.empty_like(logits, memory_format=torch.legacy_contiguous_format)).log()
    soft = ((logits + gumbels) / tau).softmax(dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    one_hot = torch.zeros_like(logits, memory_format=torch.legacy_contiguous_format).scatter_(dim, index, 1.0)
    return one_hot - soft.detach() + soft


def _slopes(x: torch.Tensor, lower: float, upper: float, what: str, generator: Any) -> torch.Tensor:
    drawn = _numbers(x, "uniform", what, generator) * (upper - lower) + lower
    return torch.where(x > 0, torch.ones_like(drawn), drawn)


def rrelu(
    x: torch.Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, generator: Any = None
) -> torch.Tensor:
    return x * _slopes(x, lower, upper, "rrelu", generator)


def rrelu_(
    x: torch.Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, generator: Any = None
) -> torch.Tensor:
    return x.mul_(_slopes(x.detach(), lower, upper, "rrelu_", generator))
