"""Random numbers of a user's module as functions of the sample, whatever the cut of a batch.

Inside `Handle.forward`, in training, every random operator of torch is either keyed or refused by
name. A keyed one is a function of (seed, update, sample id, coordinates of the element behind the
sample) and of where it stands: the path of the innermost module that runs, the number of that
module's call in this forward, and the number of the draw within the call. No size of a tensor
counts, so that padding changes nothing. Elsewhere torch is left as it is.

Three things work together:
- `forward` of each module that may draw is wrapped, to know which module runs;
- torch's random operators get kernels at a dispatch key that only this thread includes, and only
  inside a forward: whoever calls them is seen;
- `torch.compile` traces Python, so for a module with compiled parts a function mode replaces the
  same operators in Python. The compiled code receives (path, call) as a tensor, so one compiled
  block can serve many modules.
"""

from __future__ import annotations

import hashlib
import math
import sys
import types
from typing import Any, Callable, List, Optional, Tuple

import torch
import torch.utils.checkpoint as _checkpoint
from torch import nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

__all__ = ["Handle", "RandomnessError", "install"]

_KEY_NAME = "TESTING_ONLY_GenericMode"  # see src/python/keyed_dropout.cpp
_KEY = torch._C._dispatch_key_parse(_KEY_NAME)
_KEYS = torch._C.DispatchKeySet(_KEY)
_STEP = 0x632BE59BD9B4E019  # between the streams of a module's calls; odd, so they never meet


_SPARE_CALLS = 8  # of a module, more than in the last forward


class RandomnessError(RuntimeError):
    """A random draw that can't be made a function of the sample."""


class _Scope:
    """The forward that runs now. One at a time in a process, as in the trainer."""

    def __init__(self) -> None:
        self.active = False  # inside a forward in training, or its recomputation in backward
        self.entered = False  # such a forward was the last to run
        self.current: _Record | None = None
        # Of that forward (src/python/keyed_dropout.cpp). Compiled code takes them as its inputs.
        self.key: torch.Tensor | None = None
        self.ids: torch.Tensor | None = None
        self.handle: Handle | None = None  # what is installed in this process
        self.add_call: Callable[[_Record, _Call], None] | None = None


_scope = _Scope()


def _signed(number: int) -> int:
    number &= (1 << 64) - 1
    return number - (1 << 64) if number >> 63 else number


class _Call:
    """One call of a module in a forward, and the next. A chain rather than numbers, so that code
    compiled for the first call serves the others."""

    def __init__(self, stream: torch.Tensor, number: int) -> None:
        self.stream = stream  # int64 scalar on the CPU
        self.number = number
        self.next: _Call | None = None


class _Record:
    """A module's place among the draws of a forward."""

    def __init__(self, path: str, module: nn.Module | None) -> None:
        self.module = module
        self.name = "the task's forward"
        if module is not None:
            self.name = f"{path or 'the model'} ({type(module).__name__})"
        # No path of a module has a dot at its end.
        place = "." if module is None else path
        self.number = int.from_bytes(hashlib.blake2b(place.encode(), digest_size=8).digest(), "little")
        self.first = self._new_call(0)
        # What runs while the module does not: an object of its own, since torch.compile guards on
        # two attributes being the same object. The task's forward always runs.
        self.idle = self.first if module is None else self._new_call(-1)
        self.call = self.idle  # the one that runs
        self.upcoming = self.first
        self.draws = 0  # within the one that runs
        # Its only dropout is that of the attention weights, (samples * heads, L, S).
        is_attention = type(module) is nn.MultiheadAttention
        self.heads = module.num_heads if is_attention else 1
        self.original = module.forward if module is not None else None
        self.had_own_forward = module is not None and "forward" in module.__dict__
        # As a function of the class where it is one: torch.compile of torch 2.7 guards on the
        # very object that is called, and a bound method is another one for each module.
        self.of_class = None
        if getattr(self.original, "__self__", None) is module and module is not None:
            self.of_class = self.original.__func__
        self.copied = False

    def _new_call(self, number: int) -> _Call:
        stream = _signed(self.number + number * _STEP)
        torch.ops.hetseq.name_stream(stream, self.name)
        return _Call(torch.tensor(stream, dtype=torch.int64, device="cpu"), number)

    def add_call(self, call: _Call) -> None:
        call.next = self._new_call(call.number + 1)

    def start(self) -> None:
        """A forward begins. The chain is made long enough for one like the last and more, so that
        compiled code rarely meets its end."""
        call = self.upcoming
        for _ in range(_SPARE_CALLS):
            if call.next is None:
                self.add_call(call)
            call = call.next
        self.upcoming, self.call, self.draws = self.first, self.idle, 0

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        if self.of_class is not None:
            return self.of_class(self.module, *args, **kwargs)
        return self.original(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Stands in for the module's own `forward`."""
        if not _scope.active or self.copied:
            if not torch.compiler.is_compiling():
                self._refuse_unknown_recomputation()
            return self._run(*args, **kwargs)
        outer, call, draws = _scope.current, self.call, self.draws
        if self.upcoming.next is None:
            _scope.add_call(self, self.upcoming)
        _scope.current, self.call, self.draws = self, self.upcoming, 0
        self.upcoming = self.upcoming.next
        if torch.compiler.is_compiling():  # a graph can't break inside try
            result = self._run(*args, **kwargs)
            _scope.current, self.call, self.draws = outer, call, draws
            return result
        try:
            return self._run(*args, **kwargs)
        finally:
            _scope.current, self.call, self.draws = outer, call, draws

    def _refuse_unknown_recomputation(self) -> None:
        if not _scope.entered or self.copied or torch._C._current_graph_task_id() == -1:
            return
        raise RandomnessError(
            f"{self.name} runs inside backward (hetseq can't tell which of its calls is computed "
            "again, and its masks must be the same): use torch.utils.checkpoint.checkpoint"
        )

    def install(self) -> None:
        self.module.__dict__["forward"] = self.forward

    def remove(self) -> None:
        if self.had_own_forward:
            self.module.__dict__["forward"] = self.original
        else:
            self.module.__dict__.pop("forward", None)

    def __deepcopy__(self, memo: dict[int, Any]) -> "_Record":
        """A copied module runs its own `forward`, unkeyed."""
        copied = _Record.__new__(_Record)
        copied.copied, copied.of_class = True, None
        module = memo.get(id(self.module), self.module)
        copied.original = types.MethodType(type(module).forward, module)
        return copied


# At a place in a forward: the module that runs, the key and the sample ids, and all modules' places.
_State = Tuple[Optional[_Record], List[torch.Tensor], List[Tuple[_Call, _Call, int]]]


# ------ the draws


def _next_draw() -> tuple[_Record, torch.Tensor, int]:
    record = _scope.current
    draw = record.draws
    record.draws = draw + 1
    return record, record.call.stream, draw


def _mask(x: torch.Tensor, p: float, what: str) -> torch.Tensor:
    """Dropout of `x` (samples or samples * heads, ...) with `p` in (0, 1)."""
    record, stream, draw = _next_draw()
    return torch.ops.hetseq.mask.default(
        x, p, stream, _scope.key, _scope.ids, draw, record.heads, what
    )


def _uniform(like: torch.Tensor, what: str) -> torch.Tensor:
    """Numbers in [0, 1) of the shape (samples, ...) and type of `like`."""
    _, stream, draw = _next_draw()
    return torch.ops.hetseq.uniform.default(like, stream, _scope.key, _scope.ids, draw, what)


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


def _dropout(x: torch.Tensor, p: float = 0.5, train: bool = True) -> torch.Tensor:
    if not train or _checked(p) == 0 or x.numel() == 0:
        return x
    return x * 0 if p == 1 else _mask(x, p, "dropout")


def _dropout_(x: torch.Tensor, p: float = 0.5, train: bool = True) -> torch.Tensor:
    if not train or _checked(p) == 0 or x.numel() == 0:
        return x
    return x.mul_(0) if p == 1 else x.mul_(_noise(x, p, False, "dropout_"))


def _feature_dropout(x: torch.Tensor, p: float = 0.5, train: bool = True) -> torch.Tensor:
    if not train or _checked(p) == 0 or x.numel() == 0:
        return x
    return x * 0 if p == 1 else x * _noise(x, p, True, "feature_dropout")


def _feature_dropout_(x: torch.Tensor, p: float = 0.5, train: bool = True) -> torch.Tensor:
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


def _alpha_dropout(x: torch.Tensor, p: float = 0.5, train: bool = False) -> torch.Tensor:
    if not train or _checked(p) == 0 or x.numel() == 0:
        return x
    if p == 1:
        return x * 0
    factor, addend = _alpha_terms(x, p, False, "alpha_dropout")
    return x * factor + addend


def _alpha_dropout_(x: torch.Tensor, p: float = 0.5, train: bool = False) -> torch.Tensor:
    if not train or _checked(p) == 0 or x.numel() == 0:
        return x
    if p == 1:
        return x.mul_(0)
    factor, addend = _alpha_terms(x, p, False, "alpha_dropout_")
    return x.mul_(factor).add_(addend)


def _feature_alpha_dropout(x: torch.Tensor, p: float = 0.5, train: bool = False) -> torch.Tensor:
    if not train or _checked(p) == 0 or x.numel() == 0:
        return x
    if p == 1:
        return x * 0
    factor, addend = _alpha_terms(x, p, True, "feature_alpha_dropout")
    return x * factor + addend


def _feature_alpha_dropout_(x: torch.Tensor, p: float = 0.5, train: bool = False) -> torch.Tensor:
    if not train or _checked(p) == 0 or x.numel() == 0:
        return x
    if p == 1:
        return x.mul_(0)
    factor, addend = _alpha_terms(x, p, True, "feature_alpha_dropout_")
    return x.mul_(factor).add_(addend)


def _attention(
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
    if attn_mask is None:
        weights = torch.softmax(scores, -1)
    elif attn_mask.dtype == torch.bool:
        weights = torch._safe_softmax(scores.masked_fill(attn_mask.logical_not(), -math.inf), -1)
    else:
        weights = torch._safe_softmax(scores + attn_mask, -1)
    weights = weights.to(value.dtype)
    if dropout_p == 1:
        return torch.matmul(weights * 0, value)
    _, stream, draw = _next_draw()
    weights = torch.ops.hetseq.mask.default(
        weights,
        _checked(dropout_p),
        stream,
        _scope.key,
        _scope.ids,
        draw,
        1,
        "scaled_dot_product_attention",
    )
    return torch.matmul(weights, value)


def _flips(like: torch.Tensor, p: Any, what: str) -> torch.Tensor:
    """1 with probability `p`, a number or a tensor, else 0; of the shape and type of `like`."""
    drawn = torch.empty(like.shape, dtype=torch.float32, device=like.device)
    return (_uniform(drawn, what) < p).to(like.dtype)


def _bernoulli(x: torch.Tensor, p: Any = None, *, generator: Any = None) -> torch.Tensor:
    return _flips(x.detach(), x.detach() if p is None else p, "bernoulli")


def _bernoulli_(x: torch.Tensor, p: Any = 0.5, *, generator: Any = None) -> torch.Tensor:
    return x.copy_(_flips(x.detach(), p, "bernoulli_"))


def _uniform_(
    x: torch.Tensor, from_: float = 0.0, to: float = 1.0, *, generator: Any = None
) -> torch.Tensor:
    return x.copy_(_uniform(x.detach(), "uniform_") * (to - from_) + from_)


def _given(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _rand_like(x: torch.Tensor, *, generator: Any = None, **options: Any) -> torch.Tensor:
    return _uniform(torch.empty_like(x.detach(), **_given(options)), "rand_like")


def _rand(*size: Any, generator: Any = None, **options: Any) -> torch.Tensor:
    return _uniform(torch.empty(*size, **_given(options)), "rand")


# ------ eager code: kernels of torch's operators

_KEYED: dict[str, Callable[..., torch.Tensor]] = {
    "dropout": _dropout,
    "dropout_": _dropout_,
    "feature_dropout": _feature_dropout,
    "feature_dropout_": _feature_dropout_,
    "alpha_dropout": _alpha_dropout,
    "alpha_dropout_": _alpha_dropout_,
    "feature_alpha_dropout": _feature_alpha_dropout,
    "feature_alpha_dropout_": _feature_alpha_dropout_,
    "scaled_dot_product_attention": _attention,
    "bernoulli": _bernoulli,
    "bernoulli.p": _bernoulli,
    "bernoulli_.float": _bernoulli_,
    "bernoulli_.Tensor": _bernoulli_,
    "uniform_": _uniform_,
    "rand": _rand,
    "rand.generator": _rand,
    "rand_like": _rand_like,
}


def _never_draws(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return True


def _switched_off(op: torch._ops.OpOverload) -> Callable[[tuple[Any, ...], dict[str, Any]], bool]:
    """Whether a call of this random operator draws nothing since its dropout is off."""
    if op._schema.name in ("aten::_fused_sdp_choice", "aten::_nested_tensor_softmax_with_shape"):
        return _never_draws
    switches = []
    for place, argument in enumerate(op._schema.arguments):
        if argument.name in ("train", "training", "dropout", "dropout_p"):
            switches.append((place, argument.name, argument.default_value))

    def is_off(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        for place, name, default in switches:
            value = args[place] if place < len(args) else kwargs.get(name, default)
            if value is not None and not value:
                return True
        return False

    return is_off


def _refuse(what: str, why: str = "", what_to_do: str = "") -> None:
    where = _scope.current.name if _scope.current is not None else "the task's forward"
    why = why or "what it draws would depend on how a batch is cut"
    what_to_do = what_to_do or (
        "use dropout, torch.rand or bernoulli of shape (samples, ...), which hetseq makes "
        "functions of the sample"
    )
    raise RandomnessError(f"{what} in {where} draws random numbers in training ({why}): {what_to_do}")


def _is_compiling() -> bool:
    """torch.compile works on something: its own code may draw (patterns, timings)."""
    return torch._guards.CompileContext.try_get() is not None


def _is_traced() -> bool:
    """What torch.compile works on is the user's code."""
    is_fake = torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE) is not None
    return is_fake and torch._guards.TracingContext.try_get() is not None


def _kernel(op: torch._ops.OpOverload, keyed: Callable[..., torch.Tensor] | None) -> Callable[..., Any]:
    name = op._schema.name.replace("aten::", "torch.")
    is_off = _switched_off(op)

    def kernel(*args: Any, **kwargs: Any) -> Any:
        with torch._C._ExcludeDispatchKeyGuard(_KEYS):
            if is_off(args, kwargs):
                return op(*args, **kwargs)
            compiling = _is_compiling()
            if compiling and _is_traced():
                _refuse(
                    name,
                    "torch.compile traced it where hetseq can't see which module runs",
                    "compile the module (torch.compile(module) or module.compile()) rather than "
                    "a function, or leave this part uncompiled",
                )
            if compiling:
                return op(*args, **kwargs)
            if keyed is None:
                _refuse(name)
            return keyed(*args, **kwargs)

    return kernel


def _random_operators() -> list[tuple[str, torch._ops.OpOverload]]:
    """All operators of torch that draw random numbers, by name and overload."""
    found = []
    for schema in torch._C._jit_get_all_schemas():
        if not schema.name.startswith("aten::"):
            continue
        packet = getattr(torch.ops.aten, schema.name[len("aten::") :], None)
        op = getattr(packet, schema.overload_name or "default", None)
        if isinstance(op, torch._ops.OpOverload) and torch.Tag.nondeterministic_seeded in op.tags:
            overload = f".{schema.overload_name}" if schema.overload_name else ""
            found.append((schema.name[len("aten::") :] + overload, op))
    return found


def _register_kernels() -> torch.library.Library:
    library = torch.library.Library("aten", "IMPL")
    for name, op in _random_operators():
        library.impl(name, _kernel(op, _KEYED.get(name)), _KEY_NAME)
    return library


# ------ compiled code: the same in Python, where torch.compile sees it


def _functional(
    keyed: Callable[..., torch.Tensor],
    keyed_in_place: Callable[..., torch.Tensor],
    is_on: bool = True,
) -> Callable[..., torch.Tensor]:
    """As torch.nn.functional has it; `is_on` is its default for `training`."""

    def functional(
        input: torch.Tensor, p: float = 0.5, training: bool = is_on, inplace: bool = False
    ) -> torch.Tensor:
        return keyed_in_place(input, p, training) if inplace else keyed(input, p, training)

    return functional


def _inlined(function: Callable[..., Any], **replaced: Any) -> Callable[..., Any]:
    """`function` of torch.nn.functional as a function that torch.compile traces into, with other
    globals for the names in `replaced`. They are a module of their own, where torch.compile looks
    for them."""
    name = f"{__name__}.{function.__name__}"
    module = types.ModuleType(name)
    vars(module).update({**function.__globals__, **replaced, "__name__": name})
    sys.modules[name] = module
    code = function.__code__.replace(co_filename=__file__)
    inlined = types.FunctionType(code, vars(module), function.__name__, function.__defaults__)
    inlined.__kwdefaults__ = function.__kwdefaults__
    return inlined


_f_dropout = _functional(_dropout, _dropout_)
_f_feature_dropout = _functional(_feature_dropout, _feature_dropout_)

_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    F.dropout: _f_dropout,
    F.dropout1d: _f_feature_dropout,
    F.dropout2d: _f_feature_dropout,
    F.dropout3d: _f_feature_dropout,
    F.alpha_dropout: _functional(_alpha_dropout, _alpha_dropout_, is_on=False),
    F.feature_alpha_dropout: _functional(
        _feature_alpha_dropout, _feature_alpha_dropout_, is_on=False
    ),
    F.scaled_dot_product_attention: _attention,
    F.multi_head_attention_forward: _inlined(
        F.multi_head_attention_forward,
        dropout=_f_dropout,
        scaled_dot_product_attention=_attention,
        has_torch_function=lambda tensors: False,
    ),
    torch.dropout: _dropout,
    torch.dropout_: _dropout_,
    torch.feature_dropout: _feature_dropout,
    torch.feature_dropout_: _feature_dropout_,
    torch.alpha_dropout: _alpha_dropout,
    torch.alpha_dropout_: _alpha_dropout_,
    torch.feature_alpha_dropout: _feature_alpha_dropout,
    torch.feature_alpha_dropout_: _feature_alpha_dropout_,
    torch.rand: _rand,
    torch.rand_like: _rand_like,
    torch.bernoulli: _bernoulli,
    torch.Tensor.bernoulli: _bernoulli,
    torch.Tensor.bernoulli_: _bernoulli_,
    torch.Tensor.uniform_: _uniform_,
}


class _KeyedFunctions(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        keyed = _FUNCTIONS.get(func)
        if keyed is None:
            return func(*args, **(kwargs or {}))
        return keyed(*args, **(kwargs or {}))


def _is_compiled(module: nn.Module) -> bool:
    if getattr(module, "_compiled_call_impl", None) is not None or hasattr(module, "_orig_mod"):
        return True
    own = list(vars(module).values()) + [v for c in type(module).__mro__ for v in vars(c).values()]
    return any(hasattr(value, "_torchdynamo_orig_callable") for value in own if callable(value))


# ------ activation checkpointing


class _Replayed:
    """A checkpointed function that draws the same when it is computed again."""

    def __init__(self, handle: Handle, function: Callable[..., Any]) -> None:
        self._handle = handle
        self._function = function
        self._state = handle._state()
        self._calls_left = 0

    def in_forward_first(self) -> "_Replayed":
        """For a caller that runs the function's first time through this object too."""
        self._calls_left = 1
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._calls_left > 0:
            self._calls_left -= 1
            return self._function(*args, **kwargs)
        return self._handle._replay(self._state, self._function, *args, **kwargs)


# What torch.utils.checkpoint makes of a function that is checkpointed without reentrant autograd;
# torch 2.15 calls the second.
_GENERATOR = "_checkpoint_without_reentrant_generator"
if hasattr(_checkpoint, _GENERATOR + "_impl"):
    _GENERATOR += "_impl"


class _KeyedCheckpointFunction:
    """In the place of torch.utils.checkpoint.CheckpointFunction (reentrant checkpointing)."""

    def __init__(self, handle: Handle, original: Any) -> None:
        self._handle = handle
        self._original = original

    def apply(self, function: Callable[..., Any], *args: Any) -> Any:
        if _scope.active:
            function = _Replayed(self._handle, function).in_forward_first()
        return self._original.apply(function, *args)


# ------ the handle


class _Inside:
    """The forward, or its recomputation: includes the dispatch key in this thread's set."""

    def __init__(
        self, record: _Record | None, key: list[torch.Tensor], mode: TorchFunctionMode | None
    ) -> None:
        self._record = record
        self._key = key
        self._mode = mode

    def __enter__(self) -> None:
        self._before = (_scope.active, _scope.current, _scope.key, _scope.ids)
        self._guard = torch._C._IncludeDispatchKeyGuard(_KEY)
        self._guard.__enter__()
        if self._mode is not None:
            self._mode.__enter__()
        _scope.active, _scope.entered, _scope.current = True, True, self._record
        _scope.key, _scope.ids = self._key

    def __exit__(self, *error: Any) -> None:
        _scope.active, _scope.current, _scope.key, _scope.ids = self._before
        if self._mode is not None:
            self._mode.__exit__(*error)
        self._guard.__exit__(*error)


class Handle:
    """What `install` put in place."""

    def __init__(self, model: nn.Module) -> None:
        if _scope.handle is not None:
            raise RandomnessError(
                "another module is being trained in this process (its randomness is keyed by its own "
                "samples): wait for its end"
            )
        self._root = _Record("", None)
        self._records = [_Record(path, module) for path, module in _drawing_modules(model)]
        _check_distinct([self._root, *self._records])
        is_compiled = any(_is_compiled(module) for module in model.modules())
        self._mode = _KeyedFunctions() if is_compiled else None
        _scope.add_call = _Record.add_call
        if is_compiled:  # the compiled code breaks at the first of more calls than ever before
            _scope.add_call = torch._dynamo.disable(_Record.add_call)
        self._library = _register_kernels()
        self._checkpoint_function = _checkpoint.CheckpointFunction
        self._checkpoint_generator = getattr(_checkpoint, _GENERATOR)
        _checkpoint.CheckpointFunction = _KeyedCheckpointFunction(self, self._checkpoint_function)
        setattr(_checkpoint, _GENERATOR, self._generator)
        for record in self._records:
            record.install()
        _scope.handle = self

    def forward(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """`call(*args, **kwargs)`; what it draws is keyed if the trainer entered a forward in
        training (`hetseq::enter_forward`), and torch's own otherwise."""
        key = torch.ops.hetseq.entered_key()
        if not key:
            _scope.entered = False
            return call(*args, **kwargs)
        for record in self._records:
            record.start()
        self._root.start()
        with _Inside(self._root, key, self._mode):
            return call(*args, **kwargs)

    def remove(self) -> None:
        """Takes everything away again: torch is as it was before `install`."""
        if _scope.handle is not self:
            return
        for record in self._records:
            record.remove()
        _checkpoint.CheckpointFunction = self._checkpoint_function
        setattr(_checkpoint, _GENERATOR, self._checkpoint_generator)
        self._library._destroy()
        _scope.entered, _scope.handle = False, None

    def _generator(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if _scope.active:
            function = _Replayed(self, function)
        return self._checkpoint_generator(function, *args, **kwargs)

    def _state(self) -> _State:
        places = [(r.upcoming, r.call, r.draws) for r in (self._root, *self._records)]
        return _scope.current, [_scope.key, _scope.ids], places

    def _set_places(self, places: list[tuple[_Call, _Call, int]]) -> None:
        for record, place in zip((self._root, *self._records), places):
            record.upcoming, record.call, record.draws = place

    def _replay(
        self,
        state: _State,
        function: Callable[..., Any],
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        _, _, before = self._state()
        record, key, places = state
        self._set_places(places)
        try:
            with _Inside(record, key, self._mode):
                return function(*args, **kwargs)
        finally:
            self._set_places(before)


def _may_draw(module: nn.Module) -> bool:
    """False for torch's own modules that never draw themselves."""
    if isinstance(module, (torch.jit.ScriptModule, nn.ModuleList, nn.ModuleDict)):
        return False
    if type(module).forward is nn.Sequential.forward:
        return False
    if hasattr(module, "_orig_mod"):  # torch.compile's shell
        return False
    quiet = ("activation", "adaptive", "batchnorm", "conv", "distance", "flatten", "fold", "linear",
             "normalization", "instancenorm", "padding", "pixelshuffle", "sparse", "upsampling",
             "channelshuffle", "loss")
    drawing = (nn.MultiheadAttention, nn.RReLU)
    library, _, name = type(module).__module__.rpartition(".")
    return library != "torch.nn.modules" or name not in quiet or isinstance(module, drawing)


def _drawing_modules(model: nn.Module) -> list[tuple[str, nn.Module]]:
    found = []
    for path, module in model.named_modules():
        if _may_draw(module):
            parts = [part for part in path.split(".") if part not in ("", "_orig_mod")]
            found.append((".".join(parts), module))
    return found


def _check_distinct(records: list[_Record]) -> None:
    by_number: dict[int, _Record] = {}
    for record in records:
        other = by_number.setdefault(record.number, record)
        if other is not record:
            raise RandomnessError(
                f"{record.name} and {other.name} have the same key (a collision of two hashes, or "
                "two modules of one path): rename one of them"
            )


def install(model: nn.Module) -> Handle:
    """Prepares `model` for `Handle.forward`. Once before the first forward of a training; the
    operators of libhetseq_python must be loaded."""
    return Handle(model)
