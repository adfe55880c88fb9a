"""A module in fp64 for a while, and as it was before afterwards."""

from __future__ import annotations

import contextlib
import random
import sys
import threading
from typing import Any, Iterator

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

__all__ = ["default_type", "double", "generator_states", "jittered", "restored"]

# The default type of the process is fp64 meanwhile: what other threads make of the task's methods waits for it.
default_type = threading.RLock()

_LESS = (torch.float32, torch.bfloat16, torch.float16)


def _grouped_product(x: torch.Tensor, weights: torch.Tensor, *, offs: torch.Tensor, **_: Any) -> torch.Tensor:
    """torch.nn.functional.grouped_mm, which knows no fp64. x: (rows, inner). weights: (groups, inner, outer). offs: (groups),
    the ends of the groups' rows."""
    ends = offs.tolist()
    parts = [x[begin:end] @ weight for begin, end, weight in zip([0, *ends], ends, weights)]
    return torch.cat([*parts, x.new_zeros(len(x) - ends[-1], weights.shape[2])])


_GROUPED = [function for function in (getattr(torch.nn.functional, "grouped_mm", None), getattr(torch, "_grouped_mm", None))
            if function is not None]


class _DoubleFunctions(TorchFunctionMode):
    """`.float()`, `.half()`, `dtype=torch.bfloat16` and the like mean fp64."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in (torch.Tensor.float, torch.Tensor.half, torch.Tensor.bfloat16):
            func = torch.Tensor.double
        if func in _GROUPED and args[0].dtype == torch.float64 and (args[0].dim(), args[1].dim()) == (2, 3):
            func = _grouped_product
        args = tuple(torch.float64 if any(a is t for t in _LESS) else a for a in args)
        kwargs = {n: torch.float64 if any(v is t for t in _LESS) else v for n, v in kwargs.items()}
        return func(*args, **kwargs)


@contextlib.contextmanager
def double(model: nn.Module) -> Iterator[None]:
    """Parameters and buffers in fp64; the same tensors again afterwards."""
    tensors = [t for t in (*model.parameters(), *model.buffers()) if t.is_floating_point()]
    data = [(tensor, tensor.data) for tensor in tensors]
    default_type.acquire()
    default = torch.get_default_dtype()
    try:
        for tensor in tensors:
            tensor.data = tensor.data.double()
        torch.set_default_dtype(torch.float64)
        with _DoubleFunctions():
            yield
    finally:
        torch.set_default_dtype(default)
        default_type.release()
        for tensor, value in data:
            tensor.grad = None
            if tensor.data.dtype != value.dtype:
                changed = tensor.data.to(value.dtype)
                tensor.data = value
                if not torch.equal(changed, value):
                    value.copy_(changed)


@contextlib.contextmanager
def jittered(model: nn.Module, size: float, seed: int) -> Iterator[None]:
    """Parameters with random numbers of about `size`, relative to their mean size, added."""
    data = [(p, p.data) for p in model.parameters() if p.is_floating_point() and p.numel()]
    generator = torch.Generator().manual_seed(seed)
    try:
        for parameter, value in data:
            noise = torch.randn(value.shape, generator=generator, dtype=value.dtype, device="cpu")
            scale = float(value.abs().mean()) or 1.0
            parameter.data = value + noise.to(value.device) * (size * scale)
        yield
    finally:
        for parameter, value in data:
            parameter.grad = None
            parameter.data = value


def generator_states() -> dict[str, Any]:
    """Of every generator of the process that a forward could draw from unseen."""
    states: dict[str, Any] = {"torch": torch.get_rng_state(), "random": random.getstate()}
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        states["torch.cuda"] = torch.cuda.get_rng_state()
    with contextlib.suppress(ImportError):
        import numpy

        states["numpy.random"] = numpy.random.get_state()
    return states


def _set_generator_states(states: dict[str, Any]) -> None:
    torch.set_rng_state(states["torch"])
    random.setstate(states["random"])
    if "torch.cuda" in states:
        torch.cuda.set_rng_state(states["torch.cuda"])
    if "numpy.random" in states:
        import numpy

        numpy.random.set_state(states["numpy.random"])


@contextlib.contextmanager
def restored(model: nn.Module) -> Iterator[None]:
    """Gradients, buffers, the mode of training and generators are afterwards as before. Meanwhile nothing is compiled, and
    there is no autocast but the module's own: cuts are compared as exactly as the module computes."""
    gradients = {name: p.grad for name, p in model.named_parameters()}
    buffers = {name: (buffer, buffer.detach().clone()) for name, buffer in model.named_buffers()}
    modes = [(module, module.training) for module in model.modules()]
    generators = generator_states()
    devices = {p.device.type for p in model.parameters()} or {"cpu"}
    try:
        with _uncompiled(), contextlib.ExitStack() as stack:
            for device in devices:
                stack.enter_context(torch.autocast(device, enabled=False))
            yield
    finally:
        _set_generator_states(generators)
        for module, training in modes:
            module.training = training
        for name, (buffer, value) in buffers.items():
            owner, _, leaf = name.rpartition(".")
            model.get_submodule(owner)._buffers[leaf] = buffer
            with torch.no_grad():
                buffer.copy_(value)
        for name, parameter in model.named_parameters():
            parameter.grad = gradients.get(name)


@contextlib.contextmanager
def _uncompiled() -> Iterator[None]:
    """Compiled modules run eagerly: compiling for each size of a batch would take minutes."""
    if "torch._dynamo" not in sys.modules:
        yield
        return
    with torch.compiler.set_stance("force_eager"):
        yield
