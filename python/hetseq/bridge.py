"""The operators that the trainer calls, implemented for one task at a time."""

from __future__ import annotations

import contextlib
import json
import math
import os
import threading
import traceback
from typing import Any, Callable, Iterable, Iterator, Mapping, Optional, Sequence

import torch

from . import _library, randomness, self_test
from .batches import BatchMaker
from .callbacks import Callbacks
from .chain import Chain
from .cut_test import CutTest
from .double import default_type, generator_states
from .draw_places import scope, without_shells
from .findings import own_generators
from .gathered import Kept, metric_values, require_targets
from .keys import drawing_from
from .optimizers import Adapter
from .reading import describe_reading
from .recomputation import Recomputation
from .results import metric_names, rows_of, sums_of, weights_of, with_bytes
from .task import Batch, Config, Task, TaskError, chain_names, computed_metrics, describe, describe_option, overrides
from .whole import KeptValues, holds_part, room_for_self_test
from .unchanged import Buffers, Parameters
from .update_sums import NAME as SUMS
from .update_sums import UpdateSums

_OUT_OF_MEMORY = "hetseq: out of memory\n"
_MOST_TRIED = 64  # samples, of predict
_UPDATES_LOOKED_AT = 10  # and every hundredth: whether after_update draws
_SAMPLE = 4  # samples, that tell what units a chain has
_LONGEST_TRACEBACK = 3000  # characters; the trainer's messages are of bounded length
_LAST_WORDS_S = 30  # for callbacks, behind an error
_HERE = os.path.dirname(os.path.abspath(__file__))


def _is_own(frame: traceback.FrameSummary) -> bool:
    return os.path.dirname(os.path.abspath(frame.filename)) == _HERE


def _text_of(error: BaseException) -> str:
    """The traceback from the user's first line on; of an error in the task's description its message alone."""
    if isinstance(error, TaskError):
        return str(error)
    summary = traceback.TracebackException.from_exception(error)
    while summary.stack and _is_own(summary.stack[0]):
        del summary.stack[0]
    text = "".join(summary.format(chain=error.__cause__ is not None)).rstrip()
    if "does not require grad and does not have a grad_fn" in str(error):
        text += ("\nAn evaluation, in a validation or in the self-test, builds no graph. Where `forward` differentiates something "
                 "itself, do that under `with torch.enable_grad():`.")
    if len(text) > _LONGEST_TRACEBACK:
        text = "...\n" + text[-_LONGEST_TRACEBACK:]
    return text


class Binding:
    """A task, and the module that it made, while the trainer runs."""

    def __init__(self, task: Task, spec: str, callbacks: Iterable[Any] = ()):
        self.task = task
        self.callbacks = Callbacks(task, callbacks, self._callback_failed)
        self.spec = spec
        self.module: Optional[torch.nn.Module] = None
        self.failure: Optional[BaseException] = None
        self.keyed: Optional[randomness.Handle] = None
        self.recomputation: Optional[Recomputation] = None
        self.chain: Optional[Chain] = None  # once the trainer has asked for it
        self.kept: Optional[KeptValues] = None  # of a module that `Task.model` gives again
        self.has_trained = False
        self.has_evaluated = self.has_predicted = False
        self.has_gradient = False  # a loss of this process had one
        self.writes_batch = False  # the task's methods change what they are given
        self.updates = 0  # that were applied
        self.has_tried_predict = True  # or needs no trial
        self.is_tested = False  # in front of a pipeline
        self.config: Optional[Config] = None
        self.optimizers: dict[int, Adapter] = {}
        self.batches = BatchMaker(task)
        self.cut_test = CutTest(task, self.batches)

    def describe(self) -> str:
        described = describe_reading(self.task, describe(self.task, self.spec), describe_option)
        return json.dumps(described | {"events": self.callbacks.events()})

    def source(self, choices: str, name: str) -> str:
        """How data of this name are read."""
        self.batches.configure(json.loads(choices))
        return self.batches.kind(name)

    def is_split(self, name: str) -> bool:
        return self.batches.is_split(name)

    def locate(self, name: str) -> str:
        return self.batches.locate(name)

    def check_alike(self, name: str, first: str) -> None:
        self.batches.check_alike(name, first)

    def write_parts(self, name: str, parts: Sequence[int]) -> None:
        self.batches.write_parts(name, parts)

    def first_batch(self, name: str, count: int) -> tuple[list[str], list[torch.Tensor]]:
        batch = self.batches.first(name, count)
        return list(batch), [tensor.contiguous() for tensor in batch.values()]

    def model(self, choices: str) -> tuple[str, list[torch.Tensor]]:
        settings = json.loads(choices)
        config = self.config = self.task.choices = Config(settings, self.task.options)
        self.batches.seed = settings["seed"]
        with drawing_from(settings["seed"]):
            module = self.task.model(config)
        if not isinstance(module, torch.nn.Module):
            raise TaskError(f"{type(self.task).__name__}.model gave a {type(module).__name__}, not a torch.nn.Module")
        module.train()
        _check_parameters(module)
        self.end()
        self.groups: dict[str, int] = {}
        if module is self.module and holds_part(module):
            self._restore_values()
        self.module = module
        self.keyed = randomness.install(module, self.task.batch_sums, overrides(self.task, "after_update"))
        self.recomputation = Recomputation(module, self.task.recompute)
        scope.looks_at_groups, scope.exact = self.task.groups, self.task.exact
        self.buffers = Buffers(module)
        self.has_trained, self.has_evaluated, self.cut_test = False, False, CutTest(self.task, self.batches)
        self.has_tried_predict = not (self.task.self_test and settings.get("valid_data") and computed_metrics(self.task))
        return _description(self.task, module, self.keyed.sums, len(self.recomputation), self.groups)

    def forward(self, names: Sequence[str], tensors: Sequence[torch.Tensor], training: bool) -> list[torch.Tensor]:
        module, task = self.module, self.task
        is_first = training and not self.has_trained or not training and not self.has_evaluated
        self._begin_forward(training)
        with self._given(names, tensors, is_first) as batch:
            results = self.keyed.forward(task.forward, module, batch)
        if self.has_trained and task.buffers == "constant":
            self.buffers.check()
        elif self.has_trained:
            with torch.no_grad():
                self.buffers.put_back()
        if not training and self.has_trained:
            self.cut_test.run_in_validation(module, self.keyed, dict(zip(names, tensors)))
            self.buffers.begin()  # the test has written them, with the values that they had
        if self.has_trained:
            self.parameters.check()
        return self._sums(results, training, names, tensors)

    def _sums(self, results: Any, training: bool, names: Sequence[str], tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Of losses and metrics. A micro-batch may have no loss, but not the first one, if it has weight."""
        task = self.task
        sums = sums_of(results, list(task.losses), [] if training else metric_names(task))
        if training and not self.has_gradient and torch.is_grad_enabled():
            self.has_gradient = any(value.requires_grad for value in sums)
            if not self.has_gradient and (not callable(task.weights) or any(weights_of(task, dict(zip(names, tensors))).values())):
                raise TaskError(f"the sum of {', '.join(task.losses)} does not depend on a parameter to train: compute it with the "
                                "model, without detach() or no_grad()")
        return sums

    @contextlib.contextmanager
    def _given(self, names: Sequence[str], tensors: Sequence[torch.Tensor], is_first: bool = False) -> Iterator[Batch]:
        """The batch for a method of the task. What is computed again, or predicted too, needs it as it is: where a method changes
        it in place, each gets a copy. The first one gets one in any case."""
        copies = is_first or self.writes_batch
        batch = {name: tensor.clone() if copies else tensor for name, tensor in zip(names, tensors)}
        given = list(batch.values())
        versions = [tensor._version for tensor in given]
        yield batch
        self.writes_batch = self.writes_batch or any(tensor._version != version for tensor, version in zip(given, versions))

    def _begin_forward(self, training: bool) -> None:
        module = self.module
        if training and not self.has_trained:
            self.has_trained = True
            self.buffers.begin()
            self.parameters = Parameters(module)
        self.has_evaluated = self.has_evaluated or not training
        if module.training != training:
            module.train(training)
        self.keyed.sums.keeps = training

    def find_chain(self, names: Sequence[str], tensors: Sequence[torch.Tensor]) -> tuple[str, str]:
        """The units of the whole module, as JSON, and what the log shall say. The tensors are a micro-batch of the first
        samples."""
        if self.task.buffers != "constant":
            raise TaskError(f"chain in a task with buffers = '{self.task.buffers}' (a buffer would change in one stage alone): "
                            "leave one of them out")
        if self.keyed.sums.needs_parameters:
            what = "after_update" if overrides(self.task, "after_update") else "spectral normalisation"
            raise TaskError(f"chain in a task with {what} (a stage of a pipeline has a part of the module alone, and cannot "
                            "look at the rest after an update): leave one of them out")
        rows = dict(zip(names, tensors))
        self.keyed.sums.keeps = False
        if self.chain is None:
            if self.task.self_test:  # which runs on one of the ranks
                self.cut_test.learn_draws(self.module, self.keyed, rows)
            self.chain = Chain(chain_names(self.task), self.module, self.keyed, self.recomputation, self._sample(rows))
            self.module.train()
            self.buffers.begin()
        if self.task._keeps_model and self.kept is None:
            self.kept = KeptValues(self.module)
        units = [{"kind": unit.kind, "parameters": unit.parameters, "recomputed": unit.recomputed} for unit in self.chain.units]
        return json.dumps(units), self._test_whole(rows)

    def _sample(self, rows: dict[str, torch.Tensor]) -> Callable[[bool, Any], list[torch.Tensor]]:
        """Computes the sums of the first of `rows`."""
        few = {name: tensor[:_SAMPLE].clone() for name, tensor in rows.items()}
        first = next(iter(few.values()))
        ids = torch.arange(len(first), device=first.device)

        def compute(trains: bool, stage: Any) -> list[torch.Tensor]:
            self.module.train(trains)
            torch.ops.hetseq.enter_forward(1, 0, ids, trains, [])
            try:
                with torch.set_grad_enabled(trains):
                    batch = {name: tensor.clone() for name, tensor in few.items()}
                    results = self.keyed.forward(self.task.forward, self.module, batch, stage=stage)
                    return sums_of(results, list(self.task.losses), [] if trains else metric_names(self.task))
            finally:
                torch.ops.hetseq.leave_step()

        return compute

    def _test_whole(self, rows: dict[str, torch.Tensor]) -> str:
        """The self-test, which needs the whole module, on one rank of the job. What the log shall say."""
        if self.is_tested or not self.task.self_test or torch.ops.hetseq.launched_rank() > 0:
            return ""
        self.is_tested = True
        if lack := room_for_self_test(self.module):
            return f"the self-test is left out, since no stage has the whole module ({lack}): train once on one rank first"
        self.self_test(list(rows), list(rows.values()))
        return ""

    def run_units(self, names: Sequence[str], tensors: Sequence[torch.Tensor], training: bool, begin: int, end: int,
                  carried: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The hidden state behind units [begin, end), or the sums of losses and metrics where the last is among them."""
        is_first = training and not self.has_trained or not training and not self.has_evaluated
        self._begin_forward(training)
        stage = self.chain.stage(begin, end, carried)
        with self._given(names, tensors, is_first) as batch:
            results = self.keyed.forward(stage.run, self.task.forward, self.module, batch, stage=stage)
        self.buffers.check()
        if self.has_trained:
            self.parameters.check()
        if end < len(self.chain.units):
            return [results]
        return self._sums(results, training, names, tensors)

    def self_test(self, names: Sequence[str], tensors: Sequence[torch.Tensor]) -> bool:
        """Fails where the result depends on how a batch is cut. False where the micro-batch can't tell."""
        self.keyed.sums.keeps = False
        is_done = self.cut_test.run(self.module, self.keyed, dict(zip(names, tensors)))
        if not self.has_tried_predict:
            self.has_tried_predict = True
            self._try_predict(dict(zip(names, tensors)))
        self.buffers.begin()  # the test has written them, with the values that they had
        return is_done

    def learn_draws(self, names: Sequence[str], tensors: Sequence[torch.Tensor]) -> None:
        """Before the first forward of a process that has trained nothing."""
        self.keyed.sums.keeps = False
        self.cut_test.learn_draws_in_evaluation(self.module, self.keyed, dict(zip(names, tensors)))

    def _try_predict(self, batch: Batch) -> None:
        """For a metric over all predictions: a mistake shows now, and not after hours, at the first validation."""
        count = min(_MOST_TRIED, len(next(iter(batch.values()))))
        few = {name: tensor[:count].clone() for name, tensor in batch.items()}
        names, values, lengths = self.predict(list(few), list(few.values()))
        self.module.train()
        Kept(self.task).add(dict(zip(names, zip(values, lengths))), torch.arange(count), few)

    def take_sums(self) -> None:
        """An update was applied."""
        sums = self.keyed.sums.take()
        if overrides(self.task, "after_update"):
            self._change_after_update(sums)
        if self.keyed.sums.needs_parameters:
            self.buffers.begin()  # which this may have changed

    def _change_after_update(self, sums: Mapping[str, torch.Tensor]) -> None:
        looks = self.updates < _UPDATES_LOOKED_AT or self.updates % 100 == 0
        self.updates += 1
        before = generator_states() if looks else {}
        unsaved = self.buffers.unsaved()
        with torch.no_grad():
            self.task.after_update(self.module, sums)
            self.buffers.check_unsaved(unsaved)
            self.buffers.put_back()
        if looks and own_generators(before, generator_states()):
            raise TaskError("after_update draws random numbers (ranks would come to other values): draw them from a generator of "
                            "your own that a buffer seeds, which counts updates")

    def recompute(self, count: int, begin: int, end: int) -> None:
        """The first `count` modules of `Task.recompute` in units [begin, end); of all where there are none."""
        among = None
        if begin < end:
            among = sorted({place for unit in self.chain.units[begin:end] for place in unit.recomputed})
        self.recomputation.set(count, among)
        self.has_trained = False  # the trainer may have taken parameters away, or given them back

    def _restore_values(self) -> None:
        if self.kept is None:
            raise TaskError(f"{type(self.task).__name__}.model gave the same module again, and a part of its parameters was given "
                            "up (the layout of the pipeline is planned with one module, and trained with another): make a "
                            "new module in each call")
        self.kept.restore(self.module)

    def end(self) -> None:
        """The module is as it was before, and torch too."""
        if self.chain is not None:
            self.chain.remove()
            self.chain = None
        if self.recomputation is not None:
            self.recomputation.remove()
            self.recomputation = None
        if self.keyed is not None:
            self.keyed.remove()
            self.keyed = None
        scope.looks_at_groups = scope.exact = True

    def predict(self, names: Sequence[str], tensors: Sequence[torch.Tensor]) -> tuple[
            list[str], list[torch.Tensor], list[torch.Tensor]]:
        """Names, values, and the rows' lengths; these are empty where all rows have one shape."""
        self.module.eval()
        scope.predicts = True
        try:
            with torch.no_grad(), self._given(names, tensors, not self.has_predicted) as batch:
                self.has_predicted = True
                results = self.task.predict(self.module, batch)
        finally:
            scope.predicts = False
        if not isinstance(results, Mapping) or not results:
            what = "an empty dict" if isinstance(results, Mapping) else f"a {type(results).__name__}"
            raise TaskError(f"predict gave {what}: give a dict of tensors by name")
        rows = [rows_of(name, result) for name, result in results.items()]
        return list(results), [values for values, _ in rows], [lengths for _, lengths in rows]

    def announce(self, names: Sequence[str], tensors: Sequence[torch.Tensor], sample_ids: torch.Tensor, epoch: int) -> int:
        """A share whose samples are to be made; `epoch` as in `collate`."""
        return self.batches.announce(with_bytes(self.task, dict(zip(names, tensors))), sample_ids, None if epoch < 0 else epoch)

    def collate(self, names: Sequence[str], tensors: Sequence[torch.Tensor], sample_ids: torch.Tensor, epoch: int,
                announced: int, first: int) -> tuple[list[str], list[torch.Tensor], bool]:
        """A micro-batch of the rows given, or, where `announced` is a share's number, of its samples from `first` on. `epoch`:
        below 0 in evaluation. Last, whether it has what losses need."""
        given = with_bytes(self.task, dict(zip(names, tensors)))
        batch, has_targets = self.cut_test.collate(given, sample_ids, None if epoch < 0 else epoch, announced, first)
        if has_targets:  # predictions may lack them
            require_targets(self.task, batch)
        return list(batch), [tensor.contiguous() for tensor in batch.values()], has_targets

    def begin_keeping(self) -> None:
        self.predicted = Kept(self.task)

    def keep(self, names: Sequence[str], values: Sequence[torch.Tensor], lengths: Sequence[torch.Tensor], ids: torch.Tensor,
             batch_names: Sequence[str], batch: Sequence[torch.Tensor]) -> int:
        """The bytes that are kept by now."""
        self.predicted.add(dict(zip(names, zip(values, lengths))), ids, dict(zip(batch_names, batch)))
        return self.predicted.bytes

    def kept(self) -> torch.Tensor:
        return self.predicted.take()

    def metric(self, parts: Sequence[torch.Tensor]) -> list[float]:
        return metric_values(self.task, parts)

    def begin_events(self) -> None:
        self.callbacks.begin()

    def end_events(self) -> None:
        self.callbacks.finish()

    def _callback_failed(self, error: BaseException) -> None:
        self.failure = error
        torch.ops.hetseq.fail_events(_text_of(error))

    def weights(self, names: Sequence[str], tensors: Sequence[torch.Tensor]) -> list[float]:
        with default_type:
            return list(weights_of(self.task, dict(zip(names, tensors))).values())

    def optimizer(self, names: Sequence[str], tensors: Sequence[torch.Tensor], factors: Sequence[float],
                  decays: Sequence[bool], lr: float, scheduled_by: str) -> tuple[
                      int, list[str], list[torch.Tensor], bool]:
        """A handle, the names and tensors of the state, and whether a scheduler gives the learning rate. `scheduled_by`:
        what else does, empty: nothing."""
        adapter = Adapter(self.task.optimizer, names, tensors, factors, decays, lr, scheduled_by, self.groups)
        handle = max(self.optimizers, default=0) + 1
        self.optimizers[handle] = adapter
        return handle, list(adapter.state), list(adapter.state.values()), adapter.scheduler is not None

    def optimizer_rate(self, handle: int) -> float:
        return _rate_of(self.optimizers[handle].rate(), "the optimizer's scheduler")

    def optimizer_step(self, handle: int, lr: float) -> None:
        self.optimizers[handle].step(lr)

    def optimizer_restored(self, handle: int) -> None:
        self.optimizers[handle].restored()

    def optimizer_end(self, handle: int) -> None:
        del self.optimizers[handle]

    def schedule(self, update: int, epoch: int) -> float:
        return _rate_of(self.task.schedule(update, epoch, self.config), f"schedule({update}, {epoch})")


def _rate_of(made: Any, what: str) -> float:
    """A learning rate that the task's `what` gave."""
    try:
        rate = float(made)
    except (TypeError, ValueError, OverflowError):
        raise TaskError(f"{what} gave a {type(made).__name__}: give a learning rate, a number of 0 or more") from None
    if not math.isfinite(rate) or rate < -1e-9:  # rounding, at a decay's end
        raise TaskError(f"{what} gave {rate:g}: give a learning rate, a finite number of 0 or more")
    return max(rate, 0.0)


def _check_parameters(module: torch.nn.Module) -> None:
    """Refuses the parameters that the trainer has no place for."""
    for name, parameter in module.named_parameters():
        if isinstance(parameter, torch.nn.parameter.UninitializedParameter):
            raise TaskError(f"parameter '{name}' has no shape yet: run the model once on an example before it is given "
                            "to hetseq, or use a module that is not lazy")
        if parameter.requires_grad and not parameter.is_floating_point():
            raise TaskError(f"parameter '{name}' is {parameter.dtype}, and only floating-point parameters can be "
                            "trained: hold its real and imaginary parts (torch.view_as_real), or freeze it")


def _parameters(module: torch.nn.Module) -> list[tuple[str, torch.nn.Parameter]]:
    return [(without_shells(name), parameter) for name, parameter in module.named_parameters()]


def _tied_names(module: torch.nn.Module) -> dict[str, str]:
    """Each parameter's first name, by all of its names."""
    first: dict[int, str] = {}
    return {name: first.setdefault(id(parameter), without_shells(name))
            for name, parameter in module.named_parameters(remove_duplicate=False)}


def _named_in(group: Mapping[str, Any], module: torch.nn.Module) -> list[str]:
    """The first names of the parameters of a group."""
    if "params" not in group:
        raise TaskError("a group of param_groups has no 'params': name its parameters")
    names, by_identity = _tied_names(module), {id(parameter): name for name, parameter in _parameters(module)}
    found = []
    params = group["params"]
    if isinstance(params, torch.nn.Module):
        params = params.parameters()
    for entry in [params] if isinstance(params, (str, torch.Tensor)) else params:
        if isinstance(entry, torch.Tensor):
            if id(entry) not in by_identity:
                raise TaskError("param_groups names a tensor that is not a parameter of the model")
            found.append(by_identity[id(entry)])
            continue
        matching = sorted({first for given, first in names.items() for name in (given, without_shells(given))
                           if name == entry or name.startswith(entry + ".")})
        if not matching:
            raise TaskError(f"param_groups names '{entry}', which is neither a parameter nor a module of the model")
        found += matching
    return list(dict.fromkeys(found))  # a tied one once


def _parameter_settings(task: Task, module: torch.nn.Module, places: dict[str, int]) -> dict[str, dict[str, Any]]:
    settings = {name: {"name": name, "decays": parameter.dim() >= 2, "lr_factor": 1.0}
                  for name, parameter in _parameters(module)}
    parameters = dict(_parameters(module))
    grouped: set[str] = set()
    groups = task.param_groups(module)
    groups = [groups] if isinstance(groups, Mapping) else list(groups)
    if not all(isinstance(group, Mapping) for group in groups):
        raise TaskError("param_groups gives no list of groups: give a list of dicts, each with its 'params'")
    for place, group in enumerate(groups):
        if unknown := set(group) - {"params", "lr_factor", "decay", "frozen"}:
            raise TaskError(f"param_groups has '{sorted(unknown)[0]}': a group has params, lr_factor, decay and frozen")
        for name in _named_in(group, module):
            if name in grouped:
                raise TaskError(f"'{name}' is in two groups of param_groups")
            grouped.add(name)
            places[name] = place
            settings[name]["decays"] = bool(group.get("decay", settings[name]["decays"]))
            settings[name]["lr_factor"] = float(group.get("lr_factor", 1.0))
            if "frozen" in group:
                parameters[name].requires_grad_(not group["frozen"])
    for name in settings:  # in the order of the module
        places[name] = places.pop(name, len(groups))
    return settings


def _config_json(module: torch.nn.Module) -> str:
    """config.json as transformers writes it, where the module is one of its models, whose names the parameters have."""
    module = getattr(module, "_orig_mod", module)
    to_json = getattr(getattr(module, "config", None), "to_json_string", None)
    if not callable(to_json) or not hasattr(type(module), "config_class"):  # such as a model of peft around it
        return ""
    config = json.loads(to_json())
    if "model_type" in config and not config.get("architectures"):
        config["architectures"] = [type(module).__name__]  # as save_pretrained does
    return json.dumps(config, indent=2) + "\n"


def _own_memory(module: torch.nn.Module) -> None:
    """Buffers that share memory with themselves, as expanded ones do, cannot be read from a checkpoint: they get their
    own."""
    for part in module.modules():
        for name, buffer in part._buffers.items():
            if buffer is not None and not buffer.is_contiguous():
                part._buffers[name] = buffer.contiguous()


def _description(task: Task, module: torch.nn.Module, sums: UpdateSums, recomputable: int,
                 places: dict[str, int]) -> tuple[str, list[torch.Tensor]]:
    """What the trainer is told of the module, and its tensors. `places`: gets the place of each parameter's group in the
    task's `param_groups`."""
    _own_memory(module)
    settings = _parameter_settings(task, module, places)
    stored = module.state_dict(keep_vars=True)
    for name, tensor in stored.items():
        if isinstance(tensor, torch.Tensor) and tensor.is_complex():
            raise TaskError(f"'{name}' holds complex numbers (a model's files hold floating point, integers and booleans): keep "
                            "it as torch.view_as_real, or leave it out of the state_dict (persistent=False)")
    buffers = [{"name": without_shells(name), "is_stored": name in stored} for name, _ in module.named_buffers()]
    own = [] if sums.tensor is None else [sums.tensor]
    buffers += [{"name": SUMS, "is_stored": False} for _ in own]
    tensors = [parameter for _, parameter in module.named_parameters()] + [buffer for _, buffer in module.named_buffers()] + own
    description = {"parameters": [settings[name] for name, _ in _parameters(module)], "buffers": buffers,
                   "config": _config_json(module), "recomputable": recomputable,
                   "is_chain": bool(chain_names(task)), "has_groups": sums.norms.exists or task.groups, "evaluates_groups": task.groups, "sums": SUMS,
                   "takes_parameters": sums.needs_parameters, "has_own_buffers": task.buffers == "rank0"}
    return json.dumps(description), tensors


_current: Optional[Binding] = None
_running = threading.Lock()  # one training at a time in a process
_operators = torch.library.Library("hetseq", "IMPL")


def _implement(name: str, method: Callable[..., Any]) -> None:
    def call(*arguments: Any) -> Any:
        try:
            return method(_current, *arguments)
        except BaseException as error:  # it must not pass through the trainer's frames
            is_out_of_memory = self_test.says_out_of_memory(error)
            text = (_OUT_OF_MEMORY if is_out_of_memory else "") + _text_of(error)
            if not is_out_of_memory:
                _current.failure = error
        # Outside of the handler: an exception that is kept would keep the tensors of its frames.
        raise RuntimeError(text)

    _operators.impl(name, call, "CompositeImplicitAutograd")


for _name in ("describe", "source", "is_split", "locate", "check_alike", "write_parts", "first_batch", "announce", "model", "self_test", "learn_draws", "forward", "predict", "collate", "weights", "optimizer", "optimizer_step",
              "optimizer_rate", "optimizer_restored", "optimizer_end", "schedule", "take_sums", "recompute", "find_chain",
              "run_units", "begin_keeping", "keep", "kept", "metric", "begin_events", "end_events"):
    _implement("task_" + _name, getattr(Binding, _name))


def run(binding: Optional[Binding], words: Sequence[str], in_script: bool) -> tuple[int, str]:
    """Runs a command of the program with the task; its exit code, and the message of the error that ended it. A run
    records the task that it trains, whatever a configuration names."""
    global _current
    if binding is not None and binding.spec and words[0] == "train":
        words = [words[0], "--task-file", binding.spec, *words[1:]]
    if not _running.acquire(blocking=False):
        raise RuntimeError("hetseq trains already in this process")
    try:
        _current = binding
        operators = torch.ops.hetseq
        code, message = (operators.run_in_script if in_script else operators.run_as_program)(
            list(words), binding is not None)
        return code, message
    finally:
        if binding is not None:
            binding.callbacks.finish(_LAST_WORDS_S)
            binding.end()
            binding.batches.end()
        _current = None
        _running.release()
