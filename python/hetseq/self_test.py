"""The check before a training: do the sums of a micro-batch depend on how it is cut?

`check` computes the summed losses and the gradients of a few samples whole, cut in two and one by
one, with dropout on, in fp64, and says in words what depends on the cut and where.
"""

from __future__ import annotations

import contextlib
import random
from typing import Any, Callable, Iterator, Mapping

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

__all__ = ["check", "choose_count", "keyed_run", "says_out_of_memory"]

Rows = Mapping[str, torch.Tensor]
Run = Callable[[Rows, torch.Tensor], Mapping[str, torch.Tensor]]

# Rounding of fp64 sums is below 1e-12 of the largest gradient; a sample that meets another one's
# mask or mean changes it by a share of about 1.
_TOLERANCE = 1e-7
_TOLERANCE_OF_FP32 = 1e-3  # where the module does not run in fp64


def says_out_of_memory(error: BaseException) -> bool:
    """True if the error is that of an allocation that failed."""
    return (isinstance(error, (MemoryError, torch.OutOfMemoryError)) or isinstance(error, RuntimeError) and
            any(sign in str(error) for sign in ("can't allocate memory", "CUDA error: out of memory",
                                                "CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED")))


def choose_count(model: nn.Module, rows: Rows, available: int) -> int:
    """The number of samples for `check`: at most `available` and, where possible, no size of a
    tensor of the batch or of the model, so that a tensor whose dimension 0 is something else is
    found."""
    sizes = {size for tensor in rows.values() for size in tensor.shape[1:]}
    sizes |= {size for p in model.parameters() for size in p.shape}
    sizes |= {v for m in model.modules() for v in vars(m).values() if type(v) is int}
    for count in (7, 5, 11, 13, 3):
        if count <= available and count not in sizes:
            return count
    return min(available, 7)


def keyed_run(
    handle: Any, forward: Callable[[Rows], Mapping[str, torch.Tensor]], seed: int = 1
) -> Run:
    """A `run` for `check`: `forward` inside the handle of `randomness.install`, keyed by `seed`,
    update 0 and the sample ids that it gets."""

    def run(rows: Rows, sample_ids: torch.Tensor) -> Mapping[str, torch.Tensor]:
        torch.ops.hetseq.enter_forward(seed, 0, sample_ids, True)
        return handle.forward(forward, rows)

    return run


def check(
    run: Run,
    model: nn.Module,
    rows: Rows,
    sample_ids: torch.Tensor | None = None,
    buffers_may_change: bool = False,
) -> list[str]:
    """What makes the result of `run` depend on the cut: one sentence each, empty if nothing does.

    `run(rows, sample_ids)`: the forward in training, a dict of summed losses, each a scalar.
    `rows`: tensors (n, ...) of one micro-batch, n >= 2; a small n that is no other size of the
    model (`choose_count`) finds most. `sample_ids`: (n) int64, 0 to n - 1 by default.

    Parameters, gradients, buffers and torch's generators are afterwards as before. Backward runs, and
    with it what hooks on the parameters do: the trainer's are idle until a step's last backward.
    """
    count = next(iter(rows.values())).shape[0]
    device = next(iter(rows.values())).device
    if sample_ids is None:
        sample_ids = torch.arange(count, dtype=torch.int64, device=device)
    with _restored(model):
        try:
            return _SelfTest(run, model, rows, sample_ids).problems(buffers_may_change)
        except _Refused as refused:
            return [str(refused)]
        finally:
            torch.ops.hetseq.leave_step()


class _Refused(Exception):
    """A forward that hetseq stopped: its message is the finding."""


class _Sums:
    """Losses and gradients, summed over the samples."""

    def __init__(self, losses: dict[str, float], gradients: dict[str, torch.Tensor]) -> None:
        self.losses = losses
        self.gradients = gradients

    def __add__(self, other: "_Sums") -> "_Sums":
        losses = {name: value + other.losses[name] for name, value in self.losses.items()}
        names = self.gradients.keys() | other.gradients.keys()
        return _Sums(losses, {name: _sum(self, other, name) for name in names})


def _sum(a: _Sums, b: _Sums, name: str) -> torch.Tensor:
    given = [sums.gradients[name] for sums in (a, b) if name in sums.gradients]
    return given[0] if len(given) == 1 else given[0] + given[1]


class _SelfTest:
    def __init__(self, run: Run, model: nn.Module, rows: Rows, sample_ids: torch.Tensor) -> None:
        self._run = run
        self._model = model
        self._ids = sample_ids
        self._rows = dict(rows)
        self._count = len(sample_ids)
        self._is_double = False
        self._tolerance = _TOLERANCE_OF_FP32

    def problems(self, buffers_may_change: bool) -> list[str]:
        found = _batch_norms(self._model)
        buffers = _copies(self._model.named_buffers())
        generators = _generator_states()
        whole = self._whole()
        if not buffers_may_change:
            found += self._changed_buffers(buffers)
        found += _own_generators(generators, _generator_states())
        half = self._count // 2
        parts = [[range(half), range(half, self._count)], [[i] for i in range(self._count)]]
        try:
            pieces = [[self._sums(part) for part in cut] for cut in parts]
        except _Refused:
            raise
        except Exception as error:
            if says_out_of_memory(error):
                raise
            if found:
                return found
            return [
                f"the forward fails on fewer samples ({type(error).__name__}: {error}): a rank may get "
                "a micro-batch of one sample"
            ]
        differing = [_difference(whole, _total(sums), self._tolerance) for sums in pieces]
        if not any(differing):
            return found
        found += self._means(whole, pieces)
        if not found:
            found += self._unrepeatable(whole)
        if not found:
            found.append(self._place(next(text for text in differing if text)))
        return found

    def _whole(self) -> _Sums:
        """In fp64 if the module runs in it."""
        try:
            with _double(self._model):
                self._is_double = True
                sums = self._sums(range(self._count))
            self._tolerance = _TOLERANCE
            return sums
        except _Refused:
            raise
        except Exception:  # whatever it can't do in fp64
            self._is_double = False
            return self._sums(range(self._count))

    def _forward(self, samples: Any) -> Mapping[str, torch.Tensor]:
        index = torch.tensor(list(samples), device=self._ids.device)
        rows = {name: tensor[index.to(tensor.device)] for name, tensor in self._rows.items()}
        if self._is_double:
            rows = {n: t.double() if t.is_floating_point() else t for n, t in rows.items()}
        return self._run(rows, self._ids[index])

    def _sums(self, samples: Any) -> _Sums:
        """One forward and backward."""
        parameters = {n: p for n, p in self._model.named_parameters() if p.requires_grad}
        with _double(self._model) if self._is_double else contextlib.nullcontext():
            for parameter in parameters.values():
                parameter.grad = None
            try:
                losses = self._forward(samples)
                sum(losses.values()).backward()
            except RuntimeError as error:
                if _is_refusal(error):
                    raise _Refused(str(error)) from error
                raise
            gradients = {n: p.grad.double() for n, p in parameters.items() if p.grad is not None}
            for parameter in parameters.values():
                parameter.grad = None
        return _Sums({name: float(loss.detach()) for name, loss in losses.items()}, gradients)

    def _means(self, whole: _Sums, pieces: list[list[_Sums]]) -> list[str]:
        """Losses that are means over the samples rather than sums."""
        singles = pieces[1]
        found = []
        for name, loss in whole.losses.items():
            total = sum(sums.losses[name] for sums in singles)
            scale = max(abs(total), abs(loss), 1e-30)
            if abs(loss - total) <= self._tolerance * scale:
                continue
            halves = pieces[0]
            sizes = (self._count // 2, self._count - self._count // 2)
            of_halves = sum(n * s.losses[name] for n, s in zip(sizes, halves)) / self._count
            means = (total / self._count, of_halves)
            if all(abs(loss - mean) <= self._tolerance * scale for mean in means):
                found.append(
                    f"the loss '{name}' is a mean over the samples (hetseq divides the sum over all "
                    'ranks by the weights itself): use reduction="sum"'
                )
        return found

    def _unrepeatable(self, whole: _Sums) -> list[str]:
        if not _difference(whole, self._sums(range(self._count)), self._tolerance):
            return []
        return [
            "two runs of the same samples with the same ids differ (the forward has randomness or "
            "a state of its own): draw from torch's dropout, rand or bernoulli"
        ]

    def _changed_buffers(self, before: dict[str, torch.Tensor]) -> list[str]:
        names = []
        for name, buffer in self._model.named_buffers():
            old = before.get(name)
            if old is None or old.shape != buffer.shape or not torch.equal(old, buffer.to(old.dtype)):
                names.append(name)
        if not names:
            return []
        return [
            f"the {_listed('buffer', names)} changed in training (a rank would change its own copy "
            'by its own samples): make it a constant, or choose buffers="rank0"'
        ]

    def _place(self, difference: str) -> str:
        """The first module of which a sample's output depends on the other samples."""
        whole = self._outputs(range(self._count))
        for sample in range(self._count):
            alone = self._outputs([sample])
            for (name, together), (other, single) in zip(whole, alone):
                if name != other or single.shape[1:] != together.shape[1:]:
                    break
                size = max(float(together.abs().max()), 1e-30)
                if float((together[sample] - single[0]).abs().max()) > self._tolerance * size:
                    return (
                        f"the output of {name} for a sample depends on the other samples of the "
                        f"micro-batch ({difference}): compute each sample by itself, with samples "
                        "in dimension 0"
                    )
        return (
            f"sums of losses or gradients depend on how a micro-batch is cut ({difference}), though "
            "no module's output does: look at what the task's forward does with the outputs, such "
            "as a mean or a division by a size of the batch"
        )

    def _outputs(self, samples: Any) -> list[tuple[str, torch.Tensor]]:
        """Each module's output (samples, ...), in the order in which they were made."""
        seen: list[tuple[str, torch.Tensor]] = []

        def hook(name: str) -> Callable[..., None]:
            def keep(module: nn.Module, inputs: Any, output: Any) -> None:
                first = output[0] if isinstance(output, tuple) and output else output
                if isinstance(first, torch.Tensor) and first.is_floating_point() and first.dim() > 0:
                    if first.shape[0] == len(samples) and first.numel() > 0:
                        place = f"{name or 'model'} ({type(module).__name__})"
                        seen.append((place, first.detach().double().clone()))

            return keep

        handles = [m.register_forward_hook(hook(n)) for n, m in self._model.named_modules()]
        try:
            with torch.no_grad(), _double(self._model) if self._is_double else contextlib.nullcontext():
                self._forward(samples)
        finally:
            for handle in handles:
                handle.remove()
        return seen


def _is_refusal(error: RuntimeError) -> bool:
    from .randomness import RandomnessError

    return isinstance(error, RandomnessError) or "random numbers are functions of the sample" in str(error)


def _listed(noun: str, names: list[str]) -> str:
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return f"{noun}{'s' if len(names) > 1 else ''} {shown}"


def _batch_norms(model: nn.Module) -> list[str]:
    names = [
        f"{name} ({type(module).__name__})"
        for name, module in model.named_modules()
        if isinstance(module, nn.modules.batchnorm._BatchNorm)
        and (module.training or not module.track_running_stats)
    ]
    if not names:
        return []
    return [
        f"{_listed('module', names)}: batch normalisation makes each sample depend on the others of "
        "its micro-batch: use nn.GroupNorm or nn.LayerNorm, or keep it in eval mode by a train() of your own"
    ]


def _total(sums: list[_Sums]) -> _Sums:
    total = sums[0]
    for one in sums[1:]:
        total = total + one
    return total


def _difference(a: _Sums, b: _Sums, tolerance: float) -> str:
    """What differs most, or nothing."""
    for name, loss in a.losses.items():
        if not abs(loss - b.losses[name]) <= tolerance * max(abs(loss), abs(b.losses[name]), 1e-30):
            return f"loss '{name}': {loss:.9g} whole, {b.losses[name]:.9g} in pieces"
    largest = max((float(g.abs().max()) for g in a.gradients.values() if g.numel()), default=0.0)
    for name in sorted(a.gradients.keys() | b.gradients.keys()):
        have = [s.gradients.get(name) for s in (a, b)]
        one, other = (torch.zeros_like(have[1 - i]) if have[i] is None else have[i] for i in (0, 1))
        worst = float((one - other).abs().max()) if one.numel() else 0.0
        if not worst <= tolerance * max(largest, 1e-30):
            return f"gradient of {name}: {worst:.3g} apart, the largest gradient is {largest:.3g}"
    return ""


# ------ what must be as before


def _copies(named: Iterator[tuple[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    return {name: tensor.detach().clone() for name, tensor in named}


def _generator_states() -> dict[str, Any]:
    """Of every generator that a forward could draw from unseen."""
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


def _own_generators(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    def equal(name: str) -> bool:
        if name.startswith("torch"):
            return torch.equal(before[name], after[name])
        return repr(before[name]) == repr(after[name])

    return [
        f"the forward draws from the generator of {name} (what it draws would depend on how a batch "
        "is cut): use torch's dropout, rand or bernoulli of shape (samples, ...)"
        for name in before
        if not equal(name)
    ]


@contextlib.contextmanager
def _restored(model: nn.Module) -> Iterator[None]:
    gradients = {name: p.grad for name, p in model.named_parameters()}
    buffers = {name: (buffer, buffer.detach().clone()) for name, buffer in model.named_buffers()}
    generators = _generator_states()
    try:
        with _uncompiled():
            yield
    finally:
        _set_generator_states(generators)
        for name, (buffer, value) in buffers.items():
            owner, _, leaf = name.rpartition(".")
            model.get_submodule(owner)._buffers[leaf] = buffer
            with torch.no_grad():
                buffer.copy_(value)
        for name, parameter in model.named_parameters():
            parameter.grad = gradients[name]


@contextlib.contextmanager
def _uncompiled() -> Iterator[None]:
    """Compiled modules run eagerly: compiling for three sizes of a batch would take minutes."""
    import sys

    if "torch._dynamo" not in sys.modules:
        yield
        return
    with torch.compiler.set_stance("force_eager"):
        yield


class _DoubleFunctions(TorchFunctionMode):
    """`.float()`, `dtype=torch.float32` and the like mean fp64."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is torch.Tensor.float:
            func = torch.Tensor.double
        args = tuple(torch.float64 if a is torch.float32 else a for a in args)
        kwargs = {n: torch.float64 if v is torch.float32 else v for n, v in kwargs.items()}
        return func(*args, **kwargs)


@contextlib.contextmanager
def _double(model: nn.Module) -> Iterator[None]:
    """Parameters and buffers in fp64; the same tensors again afterwards."""
    tensors = [t for t in (*model.parameters(), *model.buffers()) if t.is_floating_point()]
    data = [(tensor, tensor.data) for tensor in tensors]
    default = torch.get_default_dtype()
    for tensor in tensors:
        tensor.data = tensor.data.double()
    torch.set_default_dtype(torch.float64)
    try:
        with _DoubleFunctions():
            yield
    finally:
        torch.set_default_dtype(default)
        for tensor, value in data:
            tensor.grad = None
            if tensor.data.dtype != value.dtype:
                changed = tensor.data.to(value.dtype)
                tensor.data = value
                if not torch.equal(changed, value):
                    value.copy_(changed)
