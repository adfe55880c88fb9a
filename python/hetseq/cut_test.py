"""The self-test of a task's first micro-batches, and what it needs to know of them."""

from __future__ import annotations

from typing import Optional, Sequence

import torch

from . import randomness, self_test
from .reading import makes_batches
from .results import metric_names, sums_of, weights_of
from .batches import BatchMaker, Made
from .findings import NoLoss
from .samples import Samples
from .task import Batch, Ragged, Task, TaskError, overrides

__all__ = ["CutTest"]

_MOST_KEPT = 64  # samples that are collated anew
_MOST_VALIDATIONS = 10  # micro-batches of them that are looked at, for a metric that was 0 for all samples
_MOST_WAITS = 100  # micro-batches whose rows all have one length, until others are no longer waited for


_IDS = "samples' ids"  # beside the fields; no field has such a name


class CutTest:
    def __init__(self, task: Task, batches: BatchMaker):
        self._task = task
        self._batches = batches
        self._epoch: Optional[int] = None  # of `_to_collate`
        self._to_collate: Optional[Batch] = None  # the most samples that the task's collate was given
        self._is_done = not task.self_test
        self._has_learnt = False  # of a micro-batch of one sample
        self._has_passed = False  # with rows of one length
        self._waits = 0  # micro-batches that did not tell
        self._untold: list[str] = []  # metrics that were 0 for all samples
        self._validations = 0  # that looked at them again

    def collate(self, given: Batch, ids: torch.Tensor, epoch: Optional[int], announced: int, first: int) -> Made:
        """What `forward` gets, of the rows given, or of samples that were announced (see BatchMaker)."""
        if not self._is_done:
            self._keep(self._batches.rows(announced, first, len(ids)) if announced else given, ids, epoch)
        return self._batches.take(announced, first, ids, epoch) if announced else self._batches.make(given, ids, epoch)

    def _collated(self, given: Batch) -> Batch:
        rows = dict(given)
        ids = rows.pop(_IDS)
        return self._batches.make(rows, ids, self._epoch).batch

    def _keep(self, given: Batch, ids: torch.Tensor, epoch: Optional[int]) -> None:
        """Before `collate` may change them."""
        count = min(len(ids), _MOST_KEPT)
        if self._to_collate is None or len(self._to_collate[_IDS]) < count:
            kept = {name: [row.clone() for row in rows[:count]] if isinstance(rows, list) else rows[:count].clone()
                    for name, rows in given.items()}
            self._to_collate, self._epoch = {**kept, _IDS: ids[:count].clone()}, epoch

    def run(self, module: torch.nn.Module, keyed: randomness.Handle, rows: Batch) -> bool:
        """Fails where the result depends on how a batch is cut. False where a later micro-batch is to be tested too:
        where this one has one sample, or no loss, or, on a GPU, its ragged rows have one length."""
        if self._is_done:
            return True
        samples = self._samples(rows)
        if self._has_passed and not self._tells_padding(samples):
            self._waits += 1
            return self._end(self._waits > _MOST_WAITS)
        count = self_test.choose_count(module, samples.fields, len(samples))
        if count < 2 * self._group(keyed):
            if not self._has_learnt:
                self.learn_draws(module, keyed, samples)
            return False
        self._waits += 1
        try:
            self._check(module, keyed, samples, count)
        except NoLoss:  # if no micro-batch has one, the training says so
            self._to_collate = None  # others are looked at
            return self._end(self._waits > _MOST_WAITS)
        self._has_passed = True
        return self._end(self._tells_padding(samples))

    def learn_draws(self, module: torch.nn.Module, keyed: randomness.Handle, samples: Samples | Batch) -> None:
        """Where samples lie in what is drawn, for a rank that tests nothing itself. Fails where that is nowhere."""
        self._has_learnt = True
        if not isinstance(samples, Samples):
            samples = self._samples(samples)
        self._refuse(self_test.learn_draws(self._run(module, keyed), module, samples))

    def learn_draws_in_evaluation(self, module: torch.nn.Module, keyed: randomness.Handle, rows: Batch) -> None:
        """The same for what is drawn in evaluation, before a process trains, if it does. Called once."""
        if self._task.self_test:
            module.eval()
            self_test.learn_draws(self._evaluate(module, keyed), module, self._samples(rows))

    def _group(self, keyed: randomness.Handle) -> int:
        return 2 if keyed.norms.exists or self._task.groups else 1

    def _end(self, is_done: bool) -> bool:
        if is_done:
            self._is_done, self._to_collate = True, None
        return is_done

    def _samples(self, rows: Batch) -> Samples:
        device = next(iter(rows.values())).device
        if self._to_collate is None:
            return Samples(rows, {} if makes_batches(self._task) else self._paddings(), None, device, self._shapes())
        return Samples(self._to_collate, self._paddings(), self._collated, device, self._shapes(), self._maker())

    def _paddings(self) -> dict[str, float]:
        return {name: field.padding for name, field in self._task.fields.items() if isinstance(field, Ragged)}

    def _maker(self) -> str:
        """The method that makes a batch's tensors."""
        return "collate" if overrides(self._task, "collate") else "transform" if overrides(self._task, "transform") else "dataset"

    def _shapes(self) -> dict[str, Sequence[Optional[int]]]:
        return {name: field.shape for name, field in self._task.fields.items() if isinstance(field, Ragged)}

    @staticmethod
    def _tells_padding(samples: Samples) -> bool:
        return not samples.paddings or not samples.device.type == "cuda" or samples.has_unlike_lengths(range(len(samples)))

    def _run(self, module: torch.nn.Module, keyed: randomness.Handle) -> self_test.Run:
        losses = list(self._task.losses)
        return self_test.keyed_run(
            keyed, lambda rows: dict(zip(losses, sums_of(self._task.forward(module, dict(rows)), losses, []))))

    def _evaluate(self, module: torch.nn.Module, keyed: randomness.Handle) -> self_test.Evaluate:
        losses, metrics = list(self._task.losses), metric_names(self._task)

        def forward(rows: Batch) -> dict[str, torch.Tensor]:
            return dict(zip(losses + metrics, sums_of(self._task.forward(module, dict(rows)), losses, metrics)))

        return self_test.keyed_run(keyed, forward, training=False)

    def _check(self, module: torch.nn.Module, keyed: randomness.Handle, samples: Samples, count: int) -> None:
        task = self._task
        module.train()
        self._untold = []
        self._refuse(self_test.check(
            self._run(module, keyed), module, samples, count, buffers_may_change=task.buffers == "rank0",
            evaluate=self._evaluate(module, keyed), untold=self._untold,
            weigh=(lambda batch: weights_of(task, batch)) if callable(task.weights) else None,
            group=self._group(keyed), exact=task.exact))

    def run_in_validation(self, module: torch.nn.Module, keyed: randomness.Handle, rows: Batch) -> None:
        """Of metrics that were 0 for all samples before the training: a mean is told from a sum by others."""
        count = self_test.choose_count(module, rows, len(next(iter(rows.values()))))
        if not self._untold or count < 2 or self._validations == _MOST_VALIDATIONS:
            return
        self._validations += 1
        names, everything = self._untold, self._evaluate(module, keyed)
        samples = Samples(rows, {} if makes_batches(self._task) else self._paddings(), None,
                          next(iter(rows.values())).device, self._shapes())

        def evaluate(rows: Batch, sample_ids: torch.Tensor, groups: Sequence[int]) -> dict[str, torch.Tensor]:
            sums = everything(rows, sample_ids, groups)
            return {name: sums[name] for name in names}

        self._untold = []
        self._refuse(self_test.check_evaluation(module, samples, count, evaluate, self._untold, self._group(keyed), self._task.exact))

    def _refuse(self, found: list[str]) -> None:
        if found:
            about = ("the result would depend on how a batch is cut over ranks: " if self._task.exact else
                     "the self-test refuses the task, though it is not exact: ")
            raise TaskError(about + "; ".join(found))
