"""Random numbers of a user's module as functions of the sample, whatever the cut of a batch.

Inside `Handle.forward`, every random operator of torch is either keyed or refused by name. A keyed
one is a function of (seed, update, sample id, coordinates of the element behind the sample) and of
where it stands: the path of the innermost module that runs, the number of that module's call in this
forward, and the number of the draw within the call. No size of a tensor counts, so that padding
changes nothing. One number that is drawn for all samples is a function of (seed, update) and of
where it stands. An evaluation draws the same in each update. Elsewhere torch is left as it is.

Three things work together:
- `forward` of each module that may draw is wrapped, to know which module runs (draw_places.py);
- torch's random operators get kernels at a dispatch key that only this thread includes, and only
  inside a forward: whoever calls them is seen (what they do: keyed_dropout.py, keyed_noise.py);
- `torch.compile` traces Python, so for a module with compiled parts a function mode replaces the
  same operators in Python. The compiled code receives (path, call) as a tensor, so one compiled
  block can serve many modules.
"""

from __future__ import annotations

import functools
import sys
import types
from typing import Any, Callable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import torch
import torch.utils.checkpoint as _checkpoint
from torch import nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from . import keyed_dropout as dropouts
from . import keyed_noise as noise
from .draw_places import Call, RandomnessError, Record, refuse, scope, without_shells
from .group_norms import GroupNorms, functional, refuse_compiled, without_size_check
from .update_sums import UpdateSums

__all__ = ["Handle", "RandomnessError", "install"]

_KEY_NAME = "TESTING_ONLY_GenericMode"  # see src/python/forward_scope.cpp
_KEY = torch._C._dispatch_key_parse(_KEY_NAME)
_KEYS = torch._C.DispatchKeySet(_KEY)

# ------ eager code: kernels of torch's operators

_KEYED: dict[str, Callable[..., Any]] = {
    "alpha_dropout": dropouts.alpha_dropout,
    "alpha_dropout_": dropouts.alpha_dropout_,
    "dropout": dropouts.dropout,
    "dropout_": dropouts.dropout_,
    "feature_alpha_dropout": dropouts.feature_alpha_dropout,
    "feature_alpha_dropout_": dropouts.feature_alpha_dropout_,
    "feature_dropout": dropouts.feature_dropout,
    "feature_dropout_": dropouts.feature_dropout_,
    "scaled_dot_product_attention": dropouts.attention,
    **{
        f"{name}.input": dropouts.recurrent(getattr(torch.ops.aten, name).input)
        for name in ("lstm", "gru", "rnn_tanh", "rnn_relu")
    },
    "bernoulli": noise.bernoulli,
    "bernoulli.p": noise.bernoulli,
    "bernoulli_.float": noise.bernoulli_,
    "bernoulli_.Tensor": noise.bernoulli_,
    "cauchy_": noise.cauchy_,
    "exponential_": noise.exponential_,
    "geometric_": noise.geometric_,
    "log_normal_": noise.log_normal_,
    "multinomial": noise.multinomial,
    "normal.Tensor_float": noise.normal,
    "normal.float_Tensor": noise.normal,
    "normal.Tensor_Tensor": noise.normal,
    "normal.float_float": noise.normal,
    "normal_": noise.normal_,
    "rand": noise.rand,
    "rand.generator": noise.rand,
    "rand_like": noise.rand_like,
    "rand_like.generator": noise.rand_like,
    "randint": noise.randint,
    "randint.generator": noise.randint,
    "randint.low": noise.randint,
    "randint.low_generator": noise.randint,
    "randint_like": noise.randint_like,
    "randint_like.low_dtype": noise.randint_like,
    "randint_like.Tensor": noise.randint_like,
    "randint_like.generator": noise.randint_like,
    "randint_like.low_generator_dtype": noise.randint_like,
    "randn": noise.randn,
    "randn.generator": noise.randn,
    "randn_like": noise.randn_like,
    "randn_like.generator": noise.randn_like,
    "randperm": noise.randperm,
    "randperm.generator": noise.randperm,
    "random_.from": noise.random_from,
    "random_.to": noise.random_to,
    "rrelu": noise.rrelu,
    "rrelu_": noise.rrelu_,
    "uniform_": noise.uniform_,
}

# Why other operators are refused, and what to do.
_ADVICE: dict[str, tuple[str, str]] = {
    **{
        name: (
            "between layers of packed sequences",
            "set dropout=0 and put an nn.Dropout between networks of one layer, or give it padded "
            "sequences",
        )
        for name in ("torch.lstm", "torch.gru", "torch.rnn_tanh", "torch.rnn_relu")
    },
    "torch.random_": ("without bounds", "give it bounds, or use torch.randint"),
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
                refuse(
                    name,
                    "torch.compile traced it where hetseq can't see which module runs",
                    "compile the module (torch.compile(module) or module.compile()) rather than "
                    "a function, or leave this part uncompiled",
                )
            if compiling:
                return op(*args, **kwargs)
            if keyed is None and op._schema.overload_name.endswith("out"):
                refuse(name, "into a tensor that is given", "leave out= out")
            if keyed is None:
                refuse(name, *_ADVICE.get(name, ()))
            return keyed(*args, **kwargs)

    return kernel


def _random_operators() -> list[tuple[str, torch._ops.OpOverload]]:
    """All operators of torch that draw random numbers, by name and overload."""
    found = []
    for qualified in torch.ops.hetseq.random_operators():
        name = qualified.removeprefix("aten::")
        packet, _, overload = name.partition(".")
        op = getattr(getattr(torch.ops.aten, packet, None), overload or "default", None)
        if isinstance(op, torch._ops.OpOverload):
            found.append((name, op))
    return found


def _norm_kernel(op: torch._ops.OpOverload, grouped: Callable[..., Any]) -> Callable[..., Any]:
    def kernel(*args: Any) -> Any:
        with torch._C._ExcludeDispatchKeyGuard(_KEYS):
            if not _is_compiling():
                return grouped(*args)
            if _is_traced():
                refuse_compiled(op, args)
            return op(*args)

    return kernel


def _register_kernels(norms: GroupNorms) -> torch.library.Library:
    library = torch.library.Library("aten", "IMPL")
    batch_norm, instance_norm = torch.ops.aten.batch_norm.default, torch.ops.aten.instance_norm.default
    library.impl("batch_norm", _norm_kernel(batch_norm, norms.batch_norm), _KEY_NAME)
    library.impl("instance_norm", _norm_kernel(instance_norm, instance_norm), _KEY_NAME)  # calls the first
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


_f_dropout = _functional(dropouts.dropout, dropouts.dropout_)
_f_feature_dropout = _functional(dropouts.feature_dropout, dropouts.feature_dropout_)


def _f_rrelu(
    input: torch.Tensor,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    inplace: bool = False,
) -> torch.Tensor:
    """As torch.nn.functional has it."""
    if not training:
        return F.leaky_relu(input, (lower + upper) / 2, inplace)
    return noise.rrelu_(input, lower, upper) if inplace else noise.rrelu(input, lower, upper)


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    F.dropout: _f_dropout,
    F.dropout1d: _f_feature_dropout,
    F.dropout2d: _f_feature_dropout,
    F.dropout3d: _f_feature_dropout,
    F.batch_norm: functional,
    F.alpha_dropout: _functional(dropouts.alpha_dropout, dropouts.alpha_dropout_, is_on=False),
    F.feature_alpha_dropout: _functional(
        dropouts.feature_alpha_dropout, dropouts.feature_alpha_dropout_, is_on=False
    ),
    F.gumbel_softmax: noise.gumbel_softmax,
    F.rrelu: _f_rrelu,
    F.scaled_dot_product_attention: dropouts.attention,
    F.multi_head_attention_forward: _inlined(
        F.multi_head_attention_forward,
        dropout=_f_dropout,
        scaled_dot_product_attention=dropouts.attention,
        has_torch_function=lambda tensors: False,
    ),
    torch.alpha_dropout: dropouts.alpha_dropout,
    torch.alpha_dropout_: dropouts.alpha_dropout_,
    torch.dropout: dropouts.dropout,
    torch.dropout_: dropouts.dropout_,
    torch.feature_alpha_dropout: dropouts.feature_alpha_dropout,
    torch.feature_alpha_dropout_: dropouts.feature_alpha_dropout_,
    torch.feature_dropout: dropouts.feature_dropout,
    torch.feature_dropout_: dropouts.feature_dropout_,
    torch.bernoulli: noise.bernoulli,
    torch.multinomial: noise.multinomial,
    torch.normal: noise.normal,
    torch.rand: noise.rand,
    torch.rand_like: noise.rand_like,
    torch.randint: noise.randint,
    torch.randint_like: noise.randint_like,
    torch.randn: noise.randn,
    torch.randn_like: noise.randn_like,
    torch.randperm: noise.randperm,
    torch.Tensor.bernoulli: noise.bernoulli,
    torch.Tensor.bernoulli_: noise.bernoulli_,
    torch.Tensor.cauchy_: noise.cauchy_,
    torch.Tensor.exponential_: noise.exponential_,
    torch.Tensor.geometric_: noise.geometric_,
    torch.Tensor.log_normal_: noise.log_normal_,
    torch.Tensor.multinomial: noise.multinomial,
    torch.Tensor.normal_: noise.normal_,
    torch.Tensor.random_: noise.random_,
    torch.Tensor.uniform_: noise.uniform_,
}


class _KeyedFunctions(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        keyed = _FUNCTIONS.get(func)
        if keyed is None:
            return func(*args, **(kwargs or {}))
        return keyed(*args, **(kwargs or {}))


class _SeenByCompiler:
    """While it is installed, torch.compile hands torch.rand and its kind to the mode too, which are
    no functions that a subclass of a tensor overrides."""

    def __init__(self) -> None:
        from torch._dynamo.variables import torch as calls

        self._calls, self._name = calls, "get_overridable_functions"
        self._original = getattr(calls, self._name, None)
        if self._original is not None:  # else torch.compile meets the kernel, which refuses
            functions = frozenset(self._original()) | frozenset(_FUNCTIONS)
            setattr(calls, self._name, lambda: functions)

    def remove(self) -> None:
        if self._original is not None:
            setattr(self._calls, self._name, self._original)


def _is_compiled(module: nn.Module) -> bool:
    if getattr(module, "_compiled_call_impl", None) is not None or hasattr(module, "_orig_mod"):
        return True
    own = list(vars(module).values()) + [v for c in type(module).__mro__ for v in vars(c).values()]
    return any(hasattr(value, "_torchdynamo_orig_callable") for value in own if callable(value))


# ------ activation checkpointing

class _Forward(NamedTuple):
    """What a forward draws by; see the names in draw_places.Scope."""

    key: torch.Tensor
    ids: torch.Tensor
    owner: Optional[torch.Tensor]
    samples: int
    groups: Optional[List[int]]
    group_sizes: torch.Tensor
    trains: bool
    stage: Any


# At a place in a forward: the module that runs, the forward, and all modules' places.
_State = Tuple[Optional[Record], _Forward, List[Tuple[Call, Call, int]]]


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
        return self._handle._replay(self._state, functools.partial(self._function, *args, **kwargs))


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
        if scope.active:
            function = _Replayed(self._handle, function).in_forward_first()
        return self._original.apply(function, *args)


# ------ the handle


class _Inside:
    """The forward, or its recomputation: includes the dispatch key in this thread's set."""

    def __init__(
        self, record: Record | None, forward: _Forward, mode: TorchFunctionMode | None, replays: bool = False
    ) -> None:
        self._record = record
        self._forward = forward
        self._mode = mode
        self._replays = replays

    def __enter__(self) -> None:
        self._before = (scope.active, scope.current, scope.replays, _forward_of_scope())
        self._guard = torch._C._IncludeDispatchKeyGuard(_KEY)
        self._guard.__enter__()
        if self._mode is not None:
            self._mode.__enter__()
        scope.active, scope.entered = True, True
        scope.current, scope.replays = self._record, self._replays
        _set_forward(self._forward)

    def __exit__(self, *error: Any) -> None:
        scope.active, scope.current, scope.replays, forward = self._before
        _set_forward(forward)
        if self._mode is not None:
            self._mode.__exit__(*error)
        self._guard.__exit__(*error)


def _forward_of_scope() -> _Forward:
    return _Forward(*(getattr(scope, name) for name in _Forward._fields))


def _set_forward(forward: _Forward) -> None:
    for name, value in zip(_Forward._fields, forward):
        setattr(scope, name, value)


class Handle:
    """What `install` put in place."""

    is_compiled = staticmethod(_is_compiled)

    def __init__(self, model: nn.Module, batch_sums: Mapping[str, Sequence[int]], has_after_update: bool) -> None:
        if scope.handle is not None:
            raise RandomnessError(
                "another module is being trained in this process (its randomness is keyed by its own "
                "samples): wait for its end"
            )
        torch.ops.hetseq.forget_draws()
        self._root = Record("", None)
        self._records = [Record(path, module) for path, module in _drawing_modules(model)]
        _check_distinct([self._root, *self._records])
        is_compiled = any(map(_is_compiled, model.modules()))
        self._mode = _KeyedFunctions() if is_compiled else None
        self._seen = _SeenByCompiler() if is_compiled else None
        scope.add_call = Record.add_call
        if is_compiled:  # the compiled code breaks at the first of more calls than ever before
            scope.add_call = torch._dynamo.disable(Record.add_call)
        self.sums = UpdateSums(model, {id(record.module): record for record in self._records}, batch_sums, has_after_update)
        self.norms = self.sums.norms
        self._undo_size_check = without_size_check()
        self._library = _register_kernels(self.norms)
        self._checkpoint_function = _checkpoint.CheckpointFunction
        self._checkpoint_generator = getattr(_checkpoint, _GENERATOR)
        _checkpoint.CheckpointFunction = _KeyedCheckpointFunction(self, self._checkpoint_function)
        setattr(_checkpoint, _GENERATOR, self._generator)
        for record in self._records:
            record.install()
        scope.handle = self

    def forward(self, call: Callable[..., Any], *args: Any, stage: Any = None, **kwargs: Any) -> Any:
        """`call(*args, **kwargs)`; what it draws is keyed if the trainer entered a forward
        (`hetseq::enter_forward`), and torch's own otherwise. `stage`: see draw_places.Scope."""
        key = torch.ops.hetseq.entered_key()
        if not key:
            scope.entered = False
            return call(*args, **kwargs)
        for record in self._records:
            record.start()
        self._root.start()
        operators = torch.ops.hetseq
        trains = operators.enters_training()
        samples, groups = key[1].numel(), operators.entered_groups() or None
        sizes = torch.tensor(groups[2:] if groups else [samples], device="cpu")
        forward = _Forward(*key, None, samples, groups, sizes, trains, stage)
        with _Inside(self._root, forward, self._mode):
            if not trains:
                return call(*args, **kwargs)
            self.sums.begin()
            result = call(*args, **kwargs)
            self.sums.end()
            return result

    def remove(self) -> None:
        """Takes everything away again: torch is as it was before `install`."""
        if scope.handle is not self:
            return
        for record in self._records:
            record.remove()
        _checkpoint.CheckpointFunction = self._checkpoint_function
        setattr(_checkpoint, _GENERATOR, self._checkpoint_generator)
        if self._seen is not None:
            self._seen.remove()
        self._library._destroy()
        self.sums.remove()
        self._undo_size_check()
        scope.entered, scope.handle = False, None

    def calls(self) -> list[int]:
        """How often each module that may draw was called in this forward."""
        return [record.upcoming.number for record in self._records]

    def count_calls(self, calls: list[tuple[int, int]]) -> None:
        """As if modules had been called: their places in `calls()`, and how often."""
        for place, number in calls:
            record = self._records[place]
            for _ in range(number):
                if record.upcoming.next is None:
                    record.add_call(record.upcoming)
                record.upcoming = record.upcoming.next

    def _generator(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if scope.active:
            function = _Replayed(self, function)
        return self._checkpoint_generator(function, *args, **kwargs)

    def _state(self) -> _State:
        places = [(r.upcoming, r.call, r.draws) for r in (self._root, *self._records)]
        return scope.current, _forward_of_scope(), places

    def _set_places(self, places: list[tuple[Call, Call, int]]) -> None:
        for record, place in zip((self._root, *self._records), places):
            record.upcoming, record.call, record.draws = place

    def _replay(self, state: _State, function: Callable[[], Any]) -> Any:
        _, _, before = self._state()
        record, forward, places = state
        self._set_places(places)
        try:
            with _Inside(record, forward, self._mode, replays=True):
                return function()
        finally:
            self._set_places(before)


def _may_draw(module: nn.Module) -> bool:
    """False for torch's own modules that neither draw themselves nor look at groups."""
    if isinstance(module, (torch.jit.ScriptModule, nn.ModuleList, nn.ModuleDict)):
        return False
    if type(module).forward is nn.Sequential.forward:
        return False
    if hasattr(module, "_orig_mod"):  # torch.compile's shell
        return False
    quiet = ("activation", "adaptive", "batchnorm", "conv", "distance", "flatten", "fold", "linear",
             "normalization", "instancenorm", "padding", "pixelshuffle", "sparse", "upsampling",
             "channelshuffle", "loss")
    drawing = (nn.MultiheadAttention, nn.RReLU, nn.modules.batchnorm._BatchNorm)
    library, _, name = type(module).__module__.rpartition(".")
    return library != "torch.nn.modules" or name not in quiet or isinstance(module, drawing)


def _drawing_modules(model: nn.Module) -> list[tuple[str, nn.Module]]:
    found = []
    for path, module in model.named_modules():
        if _may_draw(module):
            found.append((without_shells(path), module))
    return found


def _check_distinct(records: list[Record]) -> None:
    by_number: dict[int, Record] = {}
    for record in records:
        other = by_number.setdefault(record.number, record)
        if other is not record:
            raise RandomnessError(
                f"{record.name} and {other.name} have the same key (a collision of two hashes, or "
                "two modules of one path): rename one of them"
            )


def install(model: nn.Module, batch_sums: Mapping[str, Sequence[int]] = {}, has_after_update: bool = False) -> Handle:
    """Prepares `model` for `Handle.forward`. Once before the first forward of a training; the
    operators of libhetseq_python must be loaded. `batch_sums`, `has_after_update`: see update_sums.py."""
    return Handle(model, batch_sums, has_after_update)
