"""What a user says of a task: its data, its module, its losses."""

from __future__ import annotations

import dataclasses
import inspect
import re
from typing import Any, Callable, Iterable, Mapping, Optional, Sequence, Union

import torch

Batch = dict[str, torch.Tensor]
"""The tensors of a micro-batch by name; dimension 0 of each is the samples. In `collate`, fields of bytes are lists of
tensors."""

_TYPES = {torch.uint8: "uint8", torch.int8: "int8", torch.int32: "int32", torch.int64: "int64",
          torch.float16: "float16", torch.float32: "float32", torch.float64: "float64", torch.bool: "bool"}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*\Z")


@dataclasses.dataclass(frozen=True)
class Field:
    """A dataset of the HDF5 shards whose rows, one a sample, have one shape.

    dtype: of the tensor in a batch. Integers of any size are read as an integer type, floating point of 2, 4 or 8
        bytes as a floating-point type.
    shape: of a row; () for a number a sample. None: any length, the same in all shards.
    minimum, maximum: bounds of the values; data outside are refused before they are used.
    meaning: what the bounds mean, for error messages ("ids of the vocabulary").
    same_shape_as: another field whose rows have the same shape.
    is_target: only the losses and metrics need it, so that data for predictions may lack it.
    """
    dtype: torch.dtype
    shape: Sequence[Optional[int]] = ()
    minimum: Optional[float] = None
    maximum: Optional[float] = None
    meaning: str = ""
    same_shape_as: str = ""
    is_target: bool = False


@dataclasses.dataclass(frozen=True)
class Ragged:
    """A field whose rows are unequal: the values of all rows end to end in dataset NAME, and NAME_offsets (docs/data.md).

    shape: of a row, None for each dimension that is unequal: (None,) text, (None, 80) a spectrogram, (3, None, None)
        images. In a batch it is padded, (n, largest of each unequal dimension), and NAME_lengths, (n) int64, has the
        lengths of the unequal dimension. Where several are unequal, NAME_shape, (n, dimensions) int64, has the shapes
        instead, as it does in the shards.
    padding: the value behind the shorter rows.
    same_lengths_as: another ragged field whose rows have the same lengths; each has one unequal dimension.
    is_target: only the losses and metrics need it, so that data for predictions may lack it.
    """
    dtype: torch.dtype
    shape: Sequence[Optional[int]] = (None,)
    padding: float = 0
    minimum: Optional[float] = None
    maximum: Optional[float] = None
    meaning: str = ""
    same_lengths_as: str = ""
    is_target: bool = False


@dataclasses.dataclass(frozen=True)
class Bytes:
    """A field of bytes, such as encoded images: uint8 values in dataset NAME, and NAME_offsets (docs/data.md). `collate`
    gets it as a list of one tensor a sample, (bytes) uint8, to read and not to change, and makes tensors of it. Batches are
    counted in samples, whatever the bytes are.

    is_target: only the losses and metrics need it, so that data for predictions may lack it.
    """
    is_target: bool = False


AnyField = Union[Field, Ragged, Bytes]


@dataclasses.dataclass(frozen=True)
class Option:
    """An option of the task itself: `--NAME` on the command line and in configurations.

    default: its type is the option's: int, float, str or bool (a switch, False).
    choices: for a text, the values that are allowed.
    changeable: a run may be continued with another value.
    """
    default: Union[int, float, str, bool]
    help: str = ""
    choices: Sequence[str] = ()
    changeable: bool = False


@dataclasses.dataclass(frozen=True)
class Metric:
    """A sum over samples or tokens, divided in the end by the weight of a loss.

    loss: the name of that loss; empty: the first one.
    is_share: between 0 and 1, shown in percent. None: where its name says "accuracy".
    """
    name: str
    loss: str = ""
    is_share: Optional[bool] = None


@dataclasses.dataclass(frozen=True)
class Computed:
    """A metric that the task's `metric` computes from the predictions of a whole validation.

    is_share: between 0 and 1, shown in percent. None: where its name says "accuracy".
    """
    name: str
    is_share: Optional[bool] = None


@dataclasses.dataclass(frozen=True)
class _Samples:
    pass


@dataclasses.dataclass(frozen=True)
class _Tokens:
    field: str


samples = _Samples()
"""As a loss's weight: the number of samples."""


def tokens(field: str) -> _Tokens:
    """As a loss's weight: the number of values of a ragged field; of rows with several dimensions the number of their
    positions, those of the unequal dimensions: the frames of spectrograms (None, 80), the pixels of images (3, None, None)."""
    return _Tokens(field)


class Config:
    """The choices of a run that a model may depend on.

    model_config: the text of --model-config; empty where none was given.
    init_model, data: what --init-model and --data name; empty where none was given.
    seed: of the run. dropout, attention_dropout: None where none was given.
    The task's own options are attributes, with `-` as `_`.
    """

    model_config: str
    init_model: str
    data: str
    seed: int
    dropout: Optional[float]
    attention_dropout: Optional[float]

    def __init__(self, choices: Mapping[str, Any], options: Mapping[str, Option]):
        own = choices["options"]
        for name in ("model_config", "init_model", "data", "seed", "dropout", "attention_dropout"):
            setattr(self, name, choices[name])
        for name, option in options.items():
            option = _as_option(option)
            text = own.get(name.replace("_", "-"))
            setattr(self, name.replace("-", "_"), option.default if text is None else _value(option, text))


def _as_option(given: Any) -> Option:
    return given if isinstance(given, Option) else Option(given)


def _value(option: Option, text: str) -> Union[int, float, str, bool]:
    if isinstance(option.default, bool):
        return text in ("1", "true", "yes", "on")
    return type(option.default)(text)


class Task:
    """One task: what the shards hold, the module, and its losses as sums.

    fields: datasets of the shards by name, each a Field, a Ragged or Bytes.
    losses: names of the losses. The total loss is the sum of them, each divided by its weight over the whole batch.
    metrics: names, or Metric: sums that `forward` gives where it evaluates; or Computed: what `metric` gives.
    tokens: the ragged field whose values work is counted in, or positions as by `hetseq.tokens`; empty: samples.
    weights: what each loss is divided by: `hetseq.samples` (the default), `hetseq.tokens(field)`, a dict of them by
        loss, or a method `weights(self, batch)` that gives a number, or a dict of numbers by loss.
    options: options of its own by name, each an Option.
    defaults: default values of hetseq's options for this task, such as {"lr": 3e-4}.
    self_test: whether the first samples are computed whole and in parts, with less and more padding, before training, to
        see that the result does not depend on the cut.
    groups: whether `forward` looks at several samples together, within `hetseq.groups(batch)`.
    exact: False says that a sample's loss may depend on the other samples of its micro-batch, and so the result on how
        batches are cut: the self-test does not compare cuts. All else is checked.
    recompute: names of modules, such as "encoder.layer.*", that backward may compute again to save memory: forward then
        keeps their inputs alone. `--recompute` says how many of them, in the order of the model.
    chain: the name of an nn.ModuleList or nn.Sequential of blocks that run one after the other, such as "transformer.h", or
        several in order; "." is the model itself. A pipeline over ranks cuts the model between them
        (`--virtual-workers`). Empty: it cannot be cut.
    callbacks: objects that hear how a run goes, each with some of the methods `on_start`, `on_update`, `on_validation`,
        `on_checkpoint` and `on_end`, as the task itself may have them.
    buffers: "constant": a buffer that changes in a forward in training is an error; "rank0": it may, and rank 0's is kept.
    batch_sums: shapes of sums over the whole batch by name, which `forward` adds to (`hetseq.add_to_batch_sum`) and
        `after_update` gets.
    choices: what the user chose for the run, as `model` gets it, once data or model were asked for; in the processes of `transform`, too.
    """

    choices: Config
    fields: Mapping[str, AnyField] = {}
    losses: Sequence[str] = ("loss",)
    metrics: Sequence[Union[str, Metric, Computed]] = ()
    tokens: str = ""
    weights: Any = samples
    options: Mapping[str, Option] = {}
    defaults: Mapping[str, Any] = {}
    buffers: str = "constant"
    batch_sums: Mapping[str, Sequence[int]] = {}
    groups: bool = False
    exact: bool = True
    self_test: bool = True
    recompute: Sequence[str] = ()
    chain: Union[str, Sequence[str]] = ()
    callbacks: Sequence[Any] = ()
    _keeps_model = False  # `model` gives the same module each time
    _given_data: Mapping[str, Any] = {}  # datasets that a script gave to hetseq.train, by split

    def model(self, config: Config) -> torch.nn.Module:
        """The module to train, with its initial values. It is called with torch's generators seeded by the run."""
        raise NotImplementedError

    def dataset(self, config: Config, split: str) -> Any:
        """The samples that `--data` and `--valid-data` name, where they are in no HDF5 shards: `split` is that name, "train"
        by default. A map-style dataset of torch (`len`, and a sample by number), one of Hugging Face, a list; or a stream, that
        is iterated to its end. A sample is a dict by field, a tuple in the order of `fields`, or the only field. Processes of
        their own read the samples. There, torch's generator and those of NumPy and `random` are functions of the seed, the
        epoch and the sample."""
        raise NotImplementedError

    def transform(self, sample: dict[str, torch.Tensor], training: bool) -> Mapping[str, torch.Tensor]:
        """A sample's tensors by name, made of its fields: decoded, augmented. Processes of their own call it, with the
        generators as `dataset` has them. A micro-batch has the results of its samples stacked, which are of one shape, or,
        under the name of a ragged field, of unequal length."""
        raise NotImplementedError

    def forward(self, model: torch.nn.Module, batch: Batch) -> Union[torch.Tensor, Mapping[str, torch.Tensor]]:
        """The summed losses of a micro-batch by name, and the summed metrics where `model.training` is False. With
        one loss and no metric, a tensor will do. A sum, never a mean: hetseq divides by the whole batch's weight. A
        sample's loss must not depend on the other samples of its micro-batch."""
        raise NotImplementedError

    def after_update(self, model: torch.nn.Module, sums: Mapping[str, torch.Tensor]) -> None:
        """Changes buffers and parameters of the module in place, once an update was applied: a mean of the weights, a
        codebook. On every rank, which must come to the same values: by what is the same on all, the parameters and `sums`,
        those over the samples of the whole batch of all ranks by the names in `batch_sums`. Nothing is differentiated."""
        raise NotImplementedError

    def collate(self, batch: Batch) -> Batch:
        """The tensors that `forward` gets, made of the fields' tensors, on the CPU by the loader's thread. Dimension 0
        of each is the samples, in the same order; each row is made of its sample alone, with random numbers of
        `hetseq.generators(batch)` alone. By default the fields, or what `transform` made, as they are."""
        return batch

    def predict(self, model: torch.nn.Module, batch: Batch) -> Mapping[str, Union[torch.Tensor, Sequence[torch.Tensor]]]:
        """What `hetseq predict` writes for the samples of a batch, by the name of its dataset: a tensor with the samples
        in dimension 0, or a list of one tensor a sample, where their first dimensions may differ. The module is in eval
        mode, and nothing is differentiated. Fields with `is_target` may be missing."""
        raise NotImplementedError

    def metric(self, predictions: Mapping[str, Union[torch.Tensor, list[torch.Tensor]]]) -> Mapping[str, Any]:
        """The values of the metrics that are `Computed`, each a number, by name, on rank 0. `predictions`: what `predict`
        gave for all N samples of a validation, and the fields with `is_target`, by name, on the CPU, in the order of the
        data: a tensor (N, ...), or a list of one tensor a sample where `predict` gave one, shapes differ, or the field is
        ragged."""
        raise NotImplementedError

    def on_start(self, info: dict[str, Any]) -> None:
        """Before the first update. As the methods below, it is called on rank 0 alone, by a thread of its own, after the
        fact; an exception ends the run. `info` is a dict of plain values (docs/python.md says which)."""

    def on_update(self, info: dict[str, Any]) -> None:
        """After each update."""

    def on_validation(self, info: dict[str, Any]) -> None:
        """After each validation."""

    def on_checkpoint(self, info: dict[str, Any]) -> None:
        """When a checkpoint is complete."""

    def on_end(self, info: dict[str, Any]) -> None:
        """When the run is finished or has stopped, with what summary.json has."""

    def param_groups(self, model: torch.nn.Module) -> Iterable[Mapping[str, Any]]:
        """How parameters are trained, as dicts of "params" (parameters, or names of parameters or modules) and some of
        "lr_factor" (its learning rate over the run's), "decay" (whether weight decay applies) and "frozen". By default
        all learn alike, and weight decay applies to tensors of two dimensions or more."""
        return ()

    def optimizer(self, groups: list[dict[str, Any]], lr: float) -> Union[
            torch.optim.Optimizer, tuple[torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler]]:
        """An optimizer of torch, where none of hetseq's will do: `return torch.optim.RAdam(groups, lr=lr)`. The groups
        hold the parameters by their treatment in `param_groups`; the trainer sets the learning rate before each step. It
        does not where a scheduler of torch is given beside it, `return optimizer, scheduler`, which then steps once for
        each update that is applied.
        Its state must be tensors and numbers by parameter. A task that has this uses it by default (--optimizer
        python)."""
        raise NotImplementedError

    def schedule(self, update: int, epoch: int, config: Config) -> float:
        """The learning rate of an update, counted from 0, in an epoch, as a pure function. A task that has this uses it
        by default (--lr-scheduler python)."""
        raise NotImplementedError


Loss = Callable[[torch.nn.Module, Batch], Union[torch.Tensor, Mapping[str, torch.Tensor]]]


def task(model: torch.nn.Module, fields: Mapping[str, AnyField], loss: Loss, *,
         losses: Sequence[str] = ("loss",), metrics: Sequence[Union[str, Metric]] = (), weights: Any = samples,
         tokens: str = "", collate: Optional[Callable[[Batch], Batch]] = None,
         param_groups: Optional[Callable[[torch.nn.Module], Iterable[Mapping[str, Any]]]] = None,
         defaults: Optional[Mapping[str, Any]] = None, buffers: str = "constant", groups: bool = False,
         exact: bool = True, recompute: Sequence[str] = (), chain: Union[str, Sequence[str]] = (),
         transform: Optional[Callable[[dict[str, torch.Tensor], bool], Mapping[str, torch.Tensor]]] = None,
         predict: Optional[Callable[[torch.nn.Module, Batch], Mapping[str, Any]]] = None,
         metric: Optional[Callable[[Mapping[str, Any]], Mapping[str, Any]]] = None,
         batch_sums: Optional[Mapping[str, Sequence[int]]] = None,
         after_update: Optional[Callable[[torch.nn.Module, Mapping[str, torch.Tensor]], None]] = None) -> Task:
    """A task from a module and a function of it.

    loss: from the module and a batch to the summed loss, or to a dict of summed losses and metrics by name.
    weights: as Task.weights, or a function of a batch.
    buffers, groups, exact, recompute, chain, batch_sums: as those of Task. collate, param_groups, transform, predict,
        metric, after_update: as its methods.
    """
    given_model, given_weights, given_defaults = model, weights, dict(defaults or {})
    given_fields, given_losses, given_metrics, given_tokens = fields, losses, metrics, tokens
    given_buffers, given_groups, given_exact, given_recompute = buffers, groups, exact, recompute
    given_chain, given_sums = chain, dict(batch_sums or {})

    class FromModel(Task):
        fields, losses, metrics, tokens = given_fields, given_losses, given_metrics, given_tokens
        defaults, buffers, groups, exact = given_defaults, given_buffers, given_groups, given_exact
        recompute, chain, batch_sums, _keeps_model = given_recompute, given_chain, given_sums, True

        def model(self, config: Config) -> torch.nn.Module:
            return given_model

        def forward(self, model: torch.nn.Module, batch: Batch):
            return loss(model, batch)

    methods = {"collate": collate, "param_groups": param_groups, "transform": transform, "predict": predict, "metric": metric,
               "after_update": after_update}
    for name, function in methods.items():
        if function is not None:
            if not callable(function):
                raise TaskError(f"hetseq.task was given a {type(function).__name__} as {name}: give a function")
            setattr(FromModel, name, staticmethod(function))
    if callable(given_weights):
        FromModel.weights = lambda self, batch: given_weights(batch)
    else:
        FromModel.weights = given_weights
    return FromModel()


# What the trainer is told of a task, checked first: a mistake is found before any rank meets another.

class TaskError(ValueError):
    """A task contradicts itself, or asks for what cannot be had."""


class SampleError(TaskError):
    """A sample cannot be made."""


def _check_name(kind: str, name: Any) -> str:
    if not isinstance(name, str) or not _NAME.match(name):
        raise TaskError(f"{kind} {name!r} is not a name (letters, digits, '_', '-' and '.')")
    return name


def _type_name(name: str, dtype: torch.dtype) -> str:
    if dtype not in _TYPES:
        raise TaskError(f"field '{name}' cannot have the type {dtype}: use one of "
                        f"{', '.join(str(known) for known in _TYPES)}")
    return _TYPES[dtype]


def unequal_dimensions(shape: Sequence[Optional[int]]) -> list[int]:
    """Of the rows of a ragged field, counted from 0."""
    return [dimension for dimension, length in enumerate(shape) if length is None]


def _check_ragged(name: str, field: Ragged, fields: Mapping[str, Any]) -> None:
    shape = field.shape
    if not isinstance(shape, (tuple, list)) or not all(
            length is None or (type(length) is int and length > 0) for length in shape) or None not in shape:
        raise TaskError(f"field '{name}' is ragged and has the shape {shape!r}: give a tuple of whole numbers from 1 up, and "
                        "None for each dimension that is unequal, such as (None, 80)")
    other = fields.get(field.same_lengths_as)
    if isinstance(other, Ragged) and any(len(unequal_dimensions(one.shape)) > 1 for one in (field, other)):
        raise TaskError(f"field '{name}' shall have rows as long as those of '{field.same_lengths_as}' (rows with several "
                        "unequal dimensions have no one length): leave same_lengths_as out")


def _bytes(name: str, field: Bytes) -> dict[str, Any]:
    return {"name": name, "type": "uint8", "ragged": True, "bytes": True, "shape": [], "same_shape_as": "",
            "is_target": field.is_target, "minimum": None, "maximum": None, "meaning": "", "padding": 0.0}


def _field(name: str, field: AnyField, fields: Mapping[str, Any]) -> dict[str, Any]:
    _check_name("field", name)
    if isinstance(field, Bytes):
        return _bytes(name, field)
    if not isinstance(field, (Field, Ragged)):
        raise TaskError(f"field '{name}' is a {type(field).__name__}, not a hetseq.Field, hetseq.Ragged or hetseq.Bytes")
    is_ragged = isinstance(field, Ragged)
    other = field.same_lengths_as if is_ragged else field.same_shape_as
    if other and not isinstance(fields.get(other), Ragged if is_ragged else Field):
        raise TaskError(f"field '{name}' shall be like '{other}', which is no such field of the task")
    if is_ragged:
        _check_ragged(name, field, fields)
    elif not (isinstance(field.shape, (tuple, list)) and
              all(length is None or isinstance(length, int) for length in field.shape)):
        raise TaskError(f"field '{name}' has the shape {field.shape!r}: give a tuple, such as (784,), or () for a number "
                        "a sample")
    shape = [-1 if length is None else int(length) for length in field.shape]
    return {"name": name, "type": _type_name(name, field.dtype), "ragged": is_ragged, "bytes": False, "shape": shape,
            "same_shape_as": other, "is_target": field.is_target, "minimum": field.minimum, "maximum": field.maximum, "meaning": field.meaning,
            "padding": float(field.padding) if is_ragged else 0.0}


def computed_metrics(task: Task) -> list[Computed]:
    """The metrics that `Task.metric` gives, in their order."""
    return [metric for metric in task.metrics if isinstance(metric, Computed)]


def _is_share(metric: Union[Metric, Computed]) -> bool:
    return "accuracy" in metric.name.lower() if metric.is_share is None else metric.is_share


def _computed(task: Task) -> list[dict[str, Any]]:
    computed = computed_metrics(task)
    if computed and not overrides(task, "metric"):
        raise TaskError(f"metric '{computed[0].name}' is computed from predictions, and the task has no method metric: add "
                        "metric(self, predictions), which gives a dict of numbers")
    if computed and not overrides(task, "predict"):
        raise TaskError(f"metric '{computed[0].name}' is computed from predictions, and the task has no method predict: add "
                        "predict(self, model, batch), which gives them")
    if not computed and overrides(task, "metric") and "predictions" in inspect.signature(task.metric).parameters:  # no helper
        raise TaskError("the task has a method metric, and declares no metric that it gives: name them in metrics, such as "
                        "metrics = [hetseq.Computed('auc')]")
    return [{"name": _check_name("metric", metric.name), "is_share": _is_share(metric)} for metric in computed]


def _metrics(task: Task, losses: Sequence[str]) -> list[dict[str, Any]]:
    described = []
    for metric in task.metrics:
        if isinstance(metric, Computed):
            continue
        metric = Metric(metric) if isinstance(metric, str) else metric
        loss = metric.loss or losses[0]
        if loss not in losses:
            raise TaskError(f"metric '{metric.name}' is divided by the weight of '{loss}', which is not one of the "
                            f"losses {', '.join(losses)}")
        described.append({"name": _check_name("metric", metric.name), "loss": list(losses).index(loss),
                          "is_share": _is_share(metric)})
    return described


def _rule(task: Task, loss: str, rule: Any) -> str:
    if isinstance(rule, _Samples):
        return ""
    if isinstance(rule, _Tokens) and isinstance(task.fields.get(rule.field), Ragged):
        return rule.field
    raise TaskError(f"the weight of loss '{loss}' is {rule!r}: use hetseq.samples, hetseq.tokens(a ragged field), or a "
                    "method weights(self, batch)")


def _weight_rules(task: Task, losses: Sequence[str]) -> list[str]:
    """By loss: "" for samples, or the field whose values are counted; empty where Python tells."""
    if callable(task.weights):
        return []
    rules = task.weights if isinstance(task.weights, Mapping) else {loss: task.weights for loss in losses}
    if set(rules) != set(losses):
        raise TaskError(f"weights are given for {', '.join(rules)}, the losses are {', '.join(losses)}")
    return [_rule(task, loss, rules[loss]) for loss in losses]


def describe_option(name: str, option: Option) -> dict[str, Any]:
    _check_name("option", name)
    option = _as_option(option)
    if isinstance(option.default, bool):
        if option.default:
            raise TaskError(f"option '{name}' is a switch: its default is False")
        kind, text = "", ""
    elif isinstance(option.default, int):
        kind, text = "N", str(option.default)
    elif isinstance(option.default, float):
        kind, text = "X", repr(option.default)
    elif isinstance(option.default, str):
        kind, text = "TEXT", option.default
    else:
        raise TaskError(f"option '{name}' has the default {option.default!r}: use an int, float, str or bool")
    return {"name": name.replace("_", "-"), "type": kind, "default": text, "help": option.help or "an option of the task",
            "choices": list(option.choices), "changeable": option.changeable}


def option_text(value: Any) -> str:
    """The text of an option's value: 0.1, "a,b" of a list, "v100=64,p100=32" of a dict."""
    if isinstance(value, Mapping):
        return ",".join(f"{key}={option_text(part)}" for key, part in value.items())
    if isinstance(value, torch.Tensor) or type(value).__name__ == "ndarray":
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return ",".join(option_text(part) for part in value)
    return str(value)


def chain_names(task: Task) -> list[str]:
    """The names that the task's `chain` has; empty where the model is no chain."""
    if isinstance(task.chain, str):
        return [task.chain] if task.chain else []
    return list(task.chain)


def overrides(task: Task, method: str) -> bool:
    """True if the task has a method of its own of that name, of its class or set on the object. Data that a task keeps under
    the name are no method."""
    own = vars(task).get(method)
    return callable(own) or inspect.getattr_static(type(task), method) is not inspect.getattr_static(Task, method)


# The other keys of a line of metrics.jsonl (docs/outputs.md).
_METRICS_KEYS = {"kind", "update", "epoch", "lr", "grad_norm", "samples", "units", "samples_per_second", "units_per_second",
                 "step_ms", "allocation", "seconds", "best", "best_by"}


def _check_free(losses: Sequence[str], metrics: Sequence[str]) -> None:
    """Refuses names of losses and metrics that mean something else in metrics.jsonl."""
    for name in [*losses, *metrics]:
        if name in _METRICS_KEYS or re.fullmatch("rank_.*_ms", name):  # the latter are of each rank
            raise TaskError(f"'{name}' cannot be the name of a loss or a metric (a line of metrics.jsonl has it for "
                            "something else): choose another")
    if "loss" in metrics or ("loss" in losses and len(losses) > 1):
        raise TaskError("'loss' is the name of the sum of all losses: choose another for this loss or metric")


def _check_lengths(fields: Mapping[str, Any]) -> None:
    for name, field in fields.items():
        if not isinstance(field, Ragged):
            continue
        has_shapes = len(unequal_dimensions(field.shape)) > 1
        arriving, what = (f"{name}_shape", "shapes") if has_shapes else (f"{name}_lengths", "lengths")
        if arriving in fields:
            raise TaskError(f"field '{arriving}' has the name under which the {what} of '{name}' arrive in a batch: "
                            "choose another")


def _check_batch_sums(task: Task) -> None:
    if not isinstance(task.batch_sums, Mapping):
        raise TaskError(f"batch_sums is a {type(task.batch_sums).__name__}: give a dict of shapes by name, such as "
                        "{'codes': (16, 4)}")
    for name, shape in task.batch_sums.items():
        _check_name("batch sum", name)
        if not isinstance(shape, (tuple, list, torch.Size)) or not all(type(size) is int and size > 0 for size in shape):
            raise TaskError(f"batch sum '{name}' has the shape {shape!r}: give a tuple of whole numbers from 1 up, () for a "
                            "number")
    if task.batch_sums and not overrides(task, "after_update"):
        raise TaskError("the task has batch_sums, and no method after_update that would get them: add "
                        "after_update(self, model, sums), or leave them out")


def _check_bytes(task: Task) -> None:
    names = [name for name, field in task.fields.items() if isinstance(field, Bytes)]
    if names and not overrides(task, "collate") and not overrides(task, "transform"):
        raise TaskError(f"field '{names[0]}' is of bytes, and the task has neither transform nor collate (a forward gets tensors): make "
                        "tensors of them there, such as torch.stack of hetseq.decode_image of each")


def _check_once(what: str, names: Sequence[str]) -> None:
    if twice := [name for i, name in enumerate(names) if name in names[:i]]:
        raise TaskError(f"{what} have the name '{twice[0]}' twice: give each its own")


def describe(task: Task, spec: str) -> dict[str, Any]:
    """What the trainer is told of the task. `spec`: FILE.py:CLASS, or empty."""
    if not task.fields:
        raise TaskError(f"{type(task).__name__} names no fields: say which datasets the shards hold")
    if not isinstance(task.fields, Mapping):
        raise TaskError(f"fields is a {type(task.fields).__name__}: give a dict of hetseq.Field, hetseq.Ragged or "
                        "hetseq.Bytes by name")
    for kind in ("losses", "metrics"):
        if isinstance(getattr(task, kind), str):
            raise TaskError(f"{kind} is the text {getattr(task, kind)!r}: give a list of names, "
                            f"[{getattr(task, kind)!r}]")
    losses = [_check_name("loss", loss) for loss in task.losses]
    if not losses:
        raise TaskError("the task has no losses: name one at least")
    _check_once("the losses", losses)
    if not isinstance(task.tokens, str):
        raise TaskError(f"tokens is {task.tokens!r}: give the name of a ragged field, or '' where work is counted in samples")
    if task.tokens and not isinstance(task.fields.get(task.tokens), Ragged):
        raise TaskError(f"tokens are counted in '{task.tokens}', which is not a ragged field of the task")
    for name in ("groups", "exact", "self_test"):
        if not isinstance(getattr(task, name), bool):
            raise TaskError(f"{name} is {getattr(task, name)!r}: say True or False")
    if isinstance(task.recompute, str) or not all(isinstance(name, str) for name in task.recompute):
        raise TaskError(f"recompute is {task.recompute!r}: give a list of modules' names, such as ['encoder.layer.*']")
    if not all(isinstance(name, str) and name for name in chain_names(task)):
        raise TaskError(f"chain is {task.chain!r}: give the name of a list of blocks, such as 'transformer.h', or several")
    if task.buffers not in ("constant", "rank0"):
        raise TaskError(f"buffers is {task.buffers!r}: use 'constant' or 'rank0'")
    metrics, computed = _metrics(task, losses), _computed(task)
    metric_names = [metric["name"] for metric in metrics + computed]
    _check_once("losses and metrics", losses + metric_names)
    _check_free(losses, metric_names)
    described = [_field(*item, task.fields) for item in task.fields.items()]
    _check_lengths(task.fields)
    _check_bytes(task)
    _check_batch_sums(task)
    options = [describe_option(name, option) for name, option in task.options.items()]
    options.append({"name": "task-file", "type": "FILE.py:CLASS", "default": spec, "choices": [], "changeable": True,
                    "help": "the Python file and class of the task"})
    defaults = {name.replace("_", "-"): option_text(value) for name, value in task.defaults.items()}
    for option, method in (("optimizer", "optimizer"), ("lr-scheduler", "schedule")):
        if overrides(task, method):
            if defaults.setdefault(option, "python") != "python":
                raise TaskError(f"defaults names the {option} '{defaults[option]}', and the task has a method {method}, which "
                                f"would not be used: leave one of them out, or say {{'{option}': 'python'}}")
    return {"kind": type(task).__name__ + " data", "fields": described,
            "tokens": task.tokens, "losses": losses, "metrics": metrics, "computed": computed,
            "weights": _weight_rules(task, losses),
            "exact": task.exact, "collates": overrides(task, "collate"), "predicts": overrides(task, "predict"),
            "has_optimizer": overrides(task, "optimizer"), "has_schedule": overrides(task, "schedule"), "options": options, "defaults": defaults}
