"""The check before a training: do the sums of a micro-batch depend on how it is cut?

`check` computes the summed losses and the gradients of a few samples, with dropout on and in fp64, as other cuts of the
batch would have them: whole, in two parts of another order, one by one, each part padded no further than its own rows
need, and whole with more padding. Losses alone are compared for many samples, and metrics and losses where the module
evaluates. It says in words what depends on the cut and where.
"""

from __future__ import annotations

import contextlib
import math
import time
from typing import Any, Callable, Mapping, Optional, Sequence

import torch
from torch import nn

from .batch_sums import TOLD
from .double import double, generator_states, jittered, restored
from .findings import (Found, NoLoss, NotFinite, changed_buffers, check_collate, listed, mixed_in_collate,
                       own_generators, refusals, unsampled_draws,
                       written_parameters)
from .samples import Batch, Samples
from .sums import Gap, Sums, dense, gaps, numbers
from .task import SampleError

__all__ = ["check", "check_evaluation", "choose_count", "keyed_run", "learn_draws", "says_out_of_memory"]

Run = Callable[[Batch, torch.Tensor, Sequence[int]], Mapping[str, torch.Tensor]]
Evaluate = Run
Weigh = Callable[[Batch], Mapping[str, float]]

# Rounding of fp64 sums is below 1e-12 of the largest gradient; a sample that meets another one's
# mask or mean changes it by a share of about 1.
_TOLERANCE = 1e-7
_TOLERANCE_OF_FP32 = 1e-3  # where the module does not run in fp64
_NOISE = 30  # a difference is not one of rounding if it is so many times what rounding of the parameters makes
_MOST_SAMPLES = 64  # of the losses that are compared for many samples
_MOST_SECONDS = 5  # for those
_EXTRA = 5  # positions of more padding than needed


def says_out_of_memory(error: BaseException) -> bool:
    """True if the error is that of an allocation that failed."""
    return (isinstance(error, (MemoryError, torch.OutOfMemoryError)) or isinstance(error, RuntimeError) and
            any(sign in str(error) for sign in ("can't allocate memory", "CUDA error: out of memory",
                                                "CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED")))


def choose_count(model: nn.Module, rows: Mapping[str, torch.Tensor], available: int) -> int:
    """The number of samples for `check`: at most `available` and, where possible, no size of a
    tensor of the batch or of the model, so that a tensor whose dimension 0 is something else is
    found."""
    sizes = {size for tensor in rows.values() if isinstance(tensor, torch.Tensor) for size in tensor.shape[1:]}
    sizes |= {size for p in model.parameters() for size in p.shape}
    sizes |= {v for m in model.modules() for v in vars(m).values() if type(v) is int}
    for count in (7, 5, 11, 13, 3):
        if count <= available and count not in sizes:
            return count
    return min(available, 7)


def keyed_run(handle: Any, forward: Callable[[Batch], Mapping[str, torch.Tensor]], seed: int = 1,
              training: bool = True) -> Run:
    """A `run` for `check`, or its `evaluate`: `forward` inside the handle of `randomness.install`, keyed by `seed`,
    update 0 and the sample ids that it gets."""

    def run(rows: Batch, sample_ids: torch.Tensor, groups: Sequence[int] = ()) -> Mapping[str, torch.Tensor]:
        torch.ops.hetseq.enter_forward(seed, 0, sample_ids, training, [0, len(groups), *groups] if groups else [])
        sums = handle.forward(forward, rows)
        return {**sums, **handle.sums.batch_sums.told()} if training else sums

    return run


def check(
    run: Run,
    model: nn.Module,
    samples: Samples | Mapping[str, torch.Tensor],
    count: Optional[int] = None,
    *,
    buffers_may_change: bool = False,
    evaluate: Optional[Evaluate] = None,
    weigh: Optional[Weigh] = None,
    untold: Optional[list[str]] = None,
    group: int = 1,
    exact: bool = True,
) -> list[str]:
    """What makes the result of `run` depend on the cut: one sentence each, empty if nothing does.

    `run(rows, sample_ids, groups)`: the forward in training, a dict of summed losses, each a scalar; `groups`: sizes of the
    groups that its samples make, empty where `group` is 1.
    `samples`: of one micro-batch, two at least. `count`: of those that are computed one by one; a small one that is no
    other size of the model (`choose_count`) finds most. `evaluate`: as `run`, losses and metrics, the module being
    in eval mode. `weigh(rows)`: the weight of each loss. `untold`: gets the names of the metrics that are 0 for all samples, so
    that nothing can be told of them (`check_evaluation`). `group`: so many samples are a group that no cut divides.
    `exact`: False leaves out what compares cuts, but for means in place of sums.

    Raises NoLoss where the samples have none, so that nothing can be compared.
    Parameters, gradients, buffers and torch's generators are afterwards as before. Backward runs, and
    with it what hooks on the parameters do: the trainer's are idle until a step's last backward.
    """
    if not isinstance(samples, Samples):
        device = next(iter(samples.values())).device
        samples = Samples(samples, device=device)
    test = _SelfTest(run, model, samples, samples.chosen(len(samples) if count is None else count), evaluate, weigh,
                     group, exact)
    torch.ops.hetseq.note_draws(True)
    with restored(model):
        try:
            return test.problems(buffers_may_change)
        except Found as found:
            return found.texts
        finally:
            torch.ops.hetseq.note_draws(False)
            torch.ops.hetseq.leave_step()
            if untold is not None:
                untold += test.zeros


def learn_draws(run: Run, model: nn.Module, samples: Samples) -> list[str]:
    """Of a micro-batch of one sample: whether a draw of shape (1) is the sample's, or one number for all, and whether
    draws have rows of samples. Two samples tell, so the one is computed twice. What is wrong, in words."""
    torch.ops.hetseq.note_draws(True)
    try:
        with restored(model), torch.no_grad(), contextlib.suppress(Exception):  # the training meets it too
            for places in ([0, 0], [0]):
                run(samples.batch(places), torch.tensor(places, dtype=torch.int64, device=samples.device), [])
        return unsampled_draws(torch.ops.hetseq.unsampled_draws())
    finally:
        torch.ops.hetseq.note_draws(False)
        torch.ops.hetseq.leave_step()


def check_evaluation(model: nn.Module, samples: Samples, count: int, evaluate: Evaluate, untold: list[str],
                     group: int = 1, exact: bool = True) -> list[str]:
    """What `check` finds of the metrics that `evaluate` gives, in a validation, when the model has begun to learn."""
    test = _SelfTest(_no_run, model, samples, samples.chosen(count), evaluate, None, group, exact)
    with restored(model), torch.no_grad():
        try:
            return test.in_evaluation()
        except NotFinite:  # training went wrong, and says so elsewhere
            return []
        except Found as found:
            return found.texts
        finally:
            torch.ops.hetseq.leave_step()
            untold += test.zeros


def _no_run(rows: Batch, sample_ids: torch.Tensor) -> Mapping[str, torch.Tensor]:
    raise AssertionError("nothing trains in an evaluation")


# Of positions among the samples, or their groups; extra padding; trimmed.
Compute = Callable[[Sequence[int], int, bool], Sums]


class _SelfTest:
    def __init__(self, run: Run, model: nn.Module, samples: Samples, chosen: list[int],
                 evaluate: Optional[Evaluate], weigh: Optional[Weigh], group: int = 1,
                 exact: bool = True) -> None:
        self._run = run
        self._model = model
        self._samples = samples
        self._chosen = chosen[:len(chosen) // group * group]
        self._group = group
        self._exact = exact
        self._singly = "one by one" if group == 1 else f"{group} by {group}"
        self._evaluate = evaluate
        self._weigh = weigh
        self._device = samples.device
        self._everyone = list(range(len(self._chosen) // group))
        self._other_order = self._everyone[::2] + self._everyone[1::2][::-1]
        self._is_double = False
        self._tolerance = _TOLERANCE_OF_FP32
        self.loss_names: set[str] = set()
        self.zeros: list[str] = []  # metrics that are 0 in the evaluation
        self._written: set[str] = set()  # parameters that the forward itself changed
        self._noises: dict[tuple[str, bool], dict[tuple[str, str], float]] = {}
        self._has_gradient = False
        self._seconds = 0.0  # of a forward and backward of all

    def _learn_draws(self) -> None:
        """Where the samples lie in what is drawn, of which a forward of all and of one tell."""
        try:
            self._losses(self._everyone)
            self._losses(self._everyone[:1])
        except Exception as error:  # others are met again
            if says_out_of_memory(error):
                raise

    def problems(self, buffers_may_change: bool) -> list[str]:
        check_collate(self._samples)
        self._check_weights()
        self._learn_draws()
        found: list[str] = []
        buffers = {name: buffer.detach().clone() for name, buffer in self._model.named_buffers()}
        generators = generator_states()
        whole = self._whole(self._sums)
        self.loss_names = set(whole.losses)
        if not self._has_gradient:
            raise NoLoss
        if not buffers_may_change:
            found += changed_buffers(self._model, buffers)
        found += written_parameters(self._written)
        found += self._own_generators(generators)
        self._check_finite(self._sums, whole, found)
        compared = self._compared(self._sums, whole, found)
        found += unsampled_draws(torch.ops.hetseq.unsampled_draws()) or compared
        if not found and self._exact:
            found += self._many()
        if not found and self._evaluate is not None:
            found += self.in_evaluation()
        return found

    def _own_generators(self, before: dict[str, Any]) -> list[str]:
        """With the innermost modules that draw, of which another forward tells."""
        found = own_generators(before, generator_states())
        if not found:
            return []
        drawers: dict[str, str] = {}
        states: list[dict[str, Any]] = []

        def enter(module: nn.Module, inputs: Any) -> None:
            states.append(generator_states())

        def leave(name: str) -> Callable[..., None]:
            def look(module: nn.Module, inputs: Any, output: Any) -> None:
                before, after = states.pop(), generator_states()
                for generator in before:
                    if repr(before[generator]) != repr(after[generator]):
                        drawers.setdefault(generator, f"{name or 'the model'} ({type(module).__name__})")

            return look

        handles = [handle for name, m in self._model.named_modules()
                   for handle in (m.register_forward_pre_hook(enter), m.register_forward_hook(leave(name)))]
        try:
            with contextlib.suppress(Exception):
                self._losses(self._everyone)
        finally:
            for handle in handles:
                handle.remove()
        return own_generators(before, generator_states(), drawers=drawers)

    # What is computed

    def _whole(self, compute: Compute) -> Sums:
        """In fp64 if the module runs in it."""
        try:
            self._is_double = True
            self._tolerance = _TOLERANCE
            begin = time.monotonic()
            sums = compute(self._everyone, 0, True)
            self._seconds = time.monotonic() - begin
            return sums
        except Found:
            raise
        except Exception:  # whatever it can't do in fp64
            self._is_double = False
            self._tolerance = _TOLERANCE_OF_FP32
            return compute(self._everyone, 0, True)

    def _in_precision(self) -> contextlib.AbstractContextManager[None]:
        return double(self._model) if self._is_double else contextlib.nullcontext()

    def _rows(self, samples: Sequence[int], extra: int, trimmed: bool) -> Batch:
        torch.ops.hetseq.progress()
        rows = self._samples.batch(samples, extra, trimmed)
        if not self._is_double:
            return rows
        return {n: t.double() if t.is_floating_point() else t for n, t in rows.items()}

    def _call(self, run: Run, positions: Sequence[int], extra: int, trimmed: bool) -> Mapping[str, torch.Tensor]:
        places = self._samples_at(positions)
        rows = self._rows([self._chosen[i] for i in places], extra, trimmed)
        groups = [self._group] * len(positions) if self._group > 1 else []
        return run(rows, torch.tensor(places, dtype=torch.int64, device=self._device), groups)

    def _samples_at(self, positions: Sequence[int]) -> list[int]:
        """The samples of groups, as places among the chosen ones."""
        return [group * self._group + i for group in positions for i in range(self._group)]

    def _sums(self, positions: Sequence[int], extra: int = 0, trimmed: bool = True) -> Sums:
        """One forward and backward in training."""
        parameters = {n: p for n, p in self._model.named_parameters() if p.requires_grad}
        with self._in_precision(), refusals():
            for parameter in parameters.values():
                parameter.grad = None
            versions = {name: parameter._version for name, parameter in self._model.named_parameters()}
            losses = self._call(self._run, positions, extra, trimmed)
            self._written |= {name for name, parameter in self._model.named_parameters()
                              if versions.get(name) != parameter._version}
            loss = sum(losses.values())
            if loss.requires_grad:  # these samples may have no loss
                self._has_gradient = True
                loss.backward()
            gradients = {n: dense(p.grad).double() for n, p in parameters.items() if p.grad is not None}
            for parameter in parameters.values():
                parameter.grad = None
        return Sums(numbers(losses), gradients)

    def _losses(self, positions: Sequence[int], extra: int = 0, trimmed: bool = True) -> Sums:
        """One forward in training, where nothing is differentiated, unless the forward itself does so."""
        with self._in_precision():
            try:
                with torch.no_grad():
                    return Sums(numbers(self._call(self._run, positions, extra, trimmed)), {})
            except RuntimeError as error:
                if "does not require grad" not in str(error):
                    raise
            return Sums(numbers(self._call(self._run, positions, extra, trimmed)), {})

    def _evaluated(self, positions: Sequence[int], extra: int = 0, trimmed: bool = True) -> Sums:
        """One forward in evaluation."""
        with self._in_precision(), torch.no_grad():
            return Sums(numbers(self._call(self._evaluate, positions, extra, trimmed)), {})

    # What is compared

    def _compared(self, compute: Compute, whole: Sums, found: list[str]) -> list[str]:
        """The sums of all samples against those of other cuts."""
        half = len(self._everyone) // 2
        singles, halves = Sums({}, {}), Sums({}, {})
        of_singles: list[dict[str, float]] = []
        try:
            for i in self._everyone:
                sums = compute([i], 0, True)
                of_singles.append(dict(sums.losses))
                singles.add(sums)
            for part in (self._other_order[:half], self._other_order[half:]):
                halves.add(compute(part, 0, True))
        except (Found, SampleError):
            raise
        except Exception as error:
            if says_out_of_memory(error):
                raise
            if found:
                return []
            return [f"{self._what(compute)} fails on fewer samples ({type(error).__name__}: {error}): a rank may get "
                    "a micro-batch of one sample, padded no further than it needs"]
        cuts = [(singles, self._singly), (halves, "in two parts of another order")]
        if self._samples.paddings and self._device.type == "cpu":  # elsewhere an index out of range ends the process
            with contextlib.suppress(Exception):  # such as more positions than the model has
                cuts.append((compute(self._everyone, _EXTRA, True), f"with {_EXTRA} more positions of padding"))
        for sums, how in cuts:
            gap = self._gap(whole, sums, how, compute)
            if gap is not None:
                means = self._means(compute, whole, of_singles)
                if means or found or not self._exact:
                    return means
                return [self._cause(compute, whole, gap)]
        return []

    def _what(self, compute: Compute) -> str:
        return "the forward in evaluation" if compute == self._evaluated else "the forward"

    def _means(self, compute: Compute, whole: Sums, of_singles: list[dict[str, float]]) -> list[str]:
        """Losses and metrics that are means over the samples rather than sums."""
        found = []
        for name, loss in whole.losses.items():
            values = [losses[name] for losses in of_singles]
            is_sum, is_mean = (self._is_close(loss, made, values) for made in (sum(values), sum(values) / len(values)))
            if is_sum or not is_mean:
                continue
            if name.startswith(TOLD):
                found.append(f"{name} is a mean over the samples: give hetseq.add_to_batch_sum the sum over them")
            else:
                kind, how = ("loss", 'use reduction="sum"') if name in self.loss_names else (
                    "metric", "give the sum over the samples")
                found.append(f"the {kind} '{name}' is a mean over the samples (hetseq divides the sum over all "
                             f"ranks by the weights itself): {how}")
        return found

    def _is_close(self, a: float, b: float, values: Sequence[float]) -> bool:
        return abs(a - b) <= self._tolerance * max(sum(map(abs, values)), abs(a), 1e-30)

    def _cause(self, compute: Compute, whole: Sums, gap: Gap) -> str:
        """What a difference comes from."""
        what = self._what(compute)
        again = gaps(whole, compute(self._everyone, 0, True), "again", self._tolerance)
        if again:
            return (f"two runs of the same samples with the same ids differ in {what} (it has randomness or "
                    f"a state of its own; {again[0].text}): " + (
                        "draw nothing in evaluation" if compute == self._evaluated else
                        "draw from torch's dropout, rand or bernoulli") + ", and keep nothing from one call to the next: what changes once "
                        "an update belongs into the task's after_update")
        if collate := mixed_in_collate(self._samples):
            return collate
        apart = Sums({}, {})
        for i in self._everyone:
            apart.add(compute([i], 0, False))
        mixed = self._gap(compute(self._everyone, 0, False), apart, self._singly, compute)
        if mixed is not None:
            return self._mixing(compute, mixed)
        moved = self._gap(whole, compute(self._other_order, 0, True), "in another order", compute)
        if moved is not None:
            return f"{what} depends on the order of the samples ({moved.text}): compute each sample by itself"
        if self._samples.paddings or self._samples.collate is not None:
            return self._padding(compute, gap)
        return (f"the sums depend on how a micro-batch is cut ({gap.text}): look at what {what} does with the number of "
                "samples")

    def _mixing(self, compute: Compute, gap: Gap) -> str:
        """Samples that meet, though all are padded alike."""
        if gap.kind == "loss" and gap.name not in self.loss_names:
            return (f"the metric '{gap.name}' is no sum over the samples ({gap.text}): give a sum over samples or tokens, "
                    "which hetseq divides by the weight of a loss, and compute what is no such sum (an AUC, an F1 score) "
                    "from predictions, in the task's method metric")
        place = self._place(compute, self._everyone, [[i] for i in self._everyone], trimmed=False)
        if place:
            return (f"the output of {place} for a sample depends on the other samples of the micro-batch ({gap.text}): "
                    "compute each sample by itself, with samples in dimension 0; several rows of a sample stand one after the "
                    "other (repeat_interleave), or hetseq.rows says whose they are")
        return (f"sums of losses or gradients depend on how a micro-batch is cut ({gap.text}), though no module's output "
                f"does: look at what {self._what(compute)} of the task does with the outputs, such as a mean, a "
                "division by a size of the batch, a penalty of the parameters that is added once a micro-batch, a loss over "
                "other samples (groups = True and hetseq.groups), or rows of a sample that do not stand one after the other, "
                "as torch.cat of several inputs has them (hetseq.rows says whose rows are)")

    def _padding(self, compute: Compute, gap: Gap) -> str:
        """Sums that depend on how far the rows are padded."""
        place = self._place(compute, self._everyone, [[i] for i in self._everyone], trimmed=True)
        where = f"; the first module whose output differs is {place}" if place else "; no module's output differs"
        return (f"{self._what(compute)} depends on how far rows are padded, and so on the longest row of a micro-batch "
                f"({gap.text}{where}): give the padding mask to what mixes positions (attention, pooling, convolution, an "
                "LSTM), leave padded positions out of sums and means, flatten no dimension with a padded one behind it, "
                "and do not pad on the left")

    def _place(self, compute: Compute, whole: Sequence[int], parts: Sequence[Sequence[int]], trimmed: bool) -> str:
        """The first module whose output for a sample is another one in a part."""
        together = self._outputs(compute, whole, 0, trimmed)
        for part in parts:
            extra = _EXTRA if trimmed and self._device.type == "cpu" and not self._has_unlike_lengths() else 0
            with contextlib.suppress(Exception):
                apart: dict[str, list[torch.Tensor]] = {}
                for name, rows in self._outputs(compute, part, extra, trimmed):
                    apart.setdefault(name, []).append(rows)
                for name, all_rows in together:
                    if not apart.get(name):  # samples may lie in dimension 0 by chance
                        continue
                    rows = apart[name].pop(0)
                    if rows.dim() == all_rows.dim() and self._differs(rows, all_rows, part, trimmed):
                        return name
        return ""

    def _differs(self, rows: torch.Tensor, all_rows: torch.Tensor, part: Sequence[int], trimmed: bool) -> bool:
        """An output of a part is another one than that of all, where both have a value."""
        common = [slice(min(a, b)) for a, b in zip(rows.shape[1:], all_rows.shape[1:])]
        one, same = rows[(slice(None), *common)], all_rows[(self._samples_at(part), *common)]
        if trimmed:
            kept = self._kept(part[0], one)
            one, same = one[:, kept] if one.dim() > 1 else one, same[:, kept] if same.dim() > 1 else same
        if one.numel() == 0:
            return False
        return float((one - same).abs().max()) > self._tolerance * max(float(same.abs().max()), 1e-30)

    def _has_unlike_lengths(self) -> bool:
        return self._samples.has_unlike_lengths(self._chosen)

    def _kept(self, position: int, rows: torch.Tensor) -> slice:
        """What is no padding in dimension 1, where that is as long as a ragged row, whose first dimension is unequal."""
        length = min(self._samples.leading_length(self._chosen[i]) for i in self._samples_at([position]))
        return slice(length) if rows.dim() > 1 and rows.shape[1] >= length > 0 else slice(None)

    def _outputs(self, compute: Compute, positions: Sequence[int], extra: int, trimmed: bool) -> list[
            tuple[str, torch.Tensor]]:
        """Each module's output (samples, ...), in the order in which they were made."""
        seen: list[tuple[str, torch.Tensor]] = []

        def hook(name: str) -> Callable[..., None]:
            def keep(module: nn.Module, inputs: Any, output: Any) -> None:
                first = output[0] if isinstance(output, tuple) and output else output
                if isinstance(first, torch.Tensor) and first.is_floating_point() and first.dim() > 0:
                    if first.shape[0] == len(positions) * self._group and first.numel() > 0:
                        place = f"{name or 'model'} ({type(module).__name__})"
                        seen.append((place, first.detach().double().clone()))

            return keep

        handles = [m.register_forward_hook(hook(n)) for n, m in self._model.named_modules()]
        try:
            (self._evaluated if compute == self._evaluated else self._losses)(positions, extra, trimmed)
        finally:
            for handle in handles:
                handle.remove()
        return seen

    def _many(self) -> list[str]:
        """The losses of many samples against those of the same in small parts."""
        count = len(self._everyone)
        samples = self._samples.many(_MOST_SAMPLES)
        if self._seconds > 0:  # a forward is a third of a forward and backward, and there are two
            samples = samples[:int(len(self._chosen) * _MOST_SECONDS / (self._seconds * 2 / 3))]
        places = range(len(samples) // self._group)
        if len(places) <= count:
            return []
        few, self._chosen = self._chosen, samples
        try:
            whole, parts = self._losses(places), Sums({}, {})
            for begin in places[::count]:
                parts.add(self._losses(places[begin:begin + count]))
        except Exception as error:
            if says_out_of_memory(error):  # fp64 takes more than the training will
                return []
            raise
        finally:
            self._chosen = few
        apart = gaps(whole, parts, f"{count} by {count}", self._tolerance)
        if not apart:
            return []
        return [f"{len(samples)} samples give other sums than the same ones {count} by {count} ({apart[0].text}): look for "
                "a limit on the number of samples in the forward, such as a queue, samples that it leaves out, or a number of draws that depends on them"]

    def in_evaluation(self) -> list[str]:
        self._model.eval()
        self._is_double = False  # first as it will run, so that what fails is told before the training
        self._evaluated(self._everyone)
        generators = generator_states()
        whole = self._whole(self._evaluated)
        drawn = own_generators(generators, generator_states(), self._what(self._evaluated))
        self.zeros = [name for name, value in whole.losses.items() if value == 0 and name not in self.loss_names]
        self._check_finite(self._evaluated, whole, [])
        found = self._compared(self._evaluated, whole, [])
        return drawn if found and drawn else found

    def _check_finite(self, compute: Compute, whole: Sums, found: list[str]) -> None:
        names = [name for name, value in whole.losses.items() if not math.isfinite(value)]
        if names:
            kind = "loss" if names[0] in self.loss_names else "metric"
            spoilt = [name for name, parameter in self._model.named_parameters()
                      if not parameter.is_meta and not bool(torch.isfinite(parameter).all())]
            if spoilt:
                raise NotFinite(*found, f"the {kind} '{names[0]}' is {whole.losses[names[0]]} on the first samples, since the "
                                f"model begins with values that are not finite in {listed('parameter', spoilt)}: take an older "
                                "checkpoint, or look at the model's initial values")
            raise NotFinite(*found, f"the {kind} '{names[0]}' is {whole.losses[names[0]]} on the first samples "
                         f"({self._not_finite(compute, names[0])}) before any update: look for a logarithm, root or "
                         "division of zero in the forward, for samples without a value that counts, and at the data")
        names = [name for name, gradient in whole.gradients.items() if not bool(torch.isfinite(gradient).all())]
        if names:
            raise NotFinite(*found, f"the gradient of {listed('parameter', names)} is not finite on the first samples, though "
                         "the losses are: look for a root, norm, logarithm or division of zero in the forward, which "
                         "torch.where does not hide from the gradient")

    def _not_finite(self, compute: Compute, name: str) -> str:
        """Which samples are so by themselves."""
        bad = 0
        for i in self._everyone:
            with contextlib.suppress(Exception):
                bad += not math.isfinite(compute([i], 0, True).losses[name])
        return f"{bad} of {len(self._everyone)} by themselves"

    def _check_weights(self) -> None:
        if self._weigh is None:
            return
        whole, parts = dict(self._weigh(self._samples.collated(self._chosen))), {}
        for i in self._chosen:
            for name, weight in self._weigh(self._samples.collated([i])).items():
                parts[name] = parts.get(name, 0.0) + weight
        for name, weight in whole.items():
            if abs(weight - parts[name]) > 1e-6 * max(abs(weight), abs(parts[name])):
                raise Found(f"weights gives {weight:.9g} for '{name}' of {len(self._chosen)} samples, and "
                             f"{parts[name]:.9g} summed over the same ones one by one, each padded no further than it "
                             "needs: count what belongs to each sample, without its padding (NAME_lengths)")

    # Rounding

    def _gap(self, a: Sums, b: Sums, how: str, compute: Compute) -> Optional[Gap]:
        """What differs by more than rounding."""
        apart = gaps(a, b, how, self._tolerance)
        if apart:
            noise = self._noise(compute)
            apart = [gap for gap in apart if not gap.size <= _NOISE * noise.get((gap.kind, gap.name), 0.0)]
        return apart[0] if apart else None

    def _noise(self, compute: Compute) -> dict[tuple[str, str], float]:
        """How far each sum moves when the parameters move by their rounding, which is much where values tie or a function
        is ill-conditioned."""
        key = (compute.__name__, self._is_double)
        if key not in self._noises:
            noise = self._noises[key] = {}
            plain = compute(self._everyone, 0, True)
            if gaps(plain, compute(self._everyone, 0, True), "", self._tolerance):
                return noise  # a state of its own is no rounding
            size = 1e-15 if self._is_double else 4e-3 if self._rounds_to_half(compute) else 1.2e-7
            for seed in (1, 2):
                with self._in_precision(), jittered(self._model, size, seed):
                    moved = compute(self._everyone, 0, True)
                for gap in gaps(plain, moved, "", 0.0):
                    noise[gap.kind, gap.name] = max(noise.get((gap.kind, gap.name), 0.0), gap.size)
        return self._noises[key]

    def _rounds_to_half(self, compute: Compute) -> bool:
        """Whether something is computed in bfloat16 or fp16."""
        types = {parameter.dtype for parameter in self._model.parameters()}
        handles = [m.register_forward_hook(lambda module, inputs, output: types.add(getattr(output, "dtype", None)))
                   for m in self._model.modules()]
        try:
            compute(self._everyone, 0, True)
        finally:
            for handle in handles:
                handle.remove()
        return bool(types & {torch.bfloat16, torch.float16})
