"""What a task's methods gave, checked: sums, weights, batches and predictions."""

from __future__ import annotations

import warnings
from typing import Any, Iterable, Mapping

import torch

from .task import Batch, Bytes, Computed, Task, TaskError

__all__ = ["collated", "metric_names", "rows_of", "sums_of", "weights_of", "with_bytes"]


def with_bytes(task: Task, given: Batch) -> Batch:
    """The fields of bytes as lists of a tensor a sample, which share the memory of what the trainer gave."""
    for name, field in task.fields.items():
        if isinstance(field, Bytes) and name in given:
            offsets = given.pop(f"{name}_offsets")
            given[name] = list(given[name].split(offsets.diff().tolist()))
    return given


def collated(task: Task, given: Batch) -> Batch:
    samples = len(next(iter(given.values())))
    batch = task.collate(given)
    if not isinstance(batch, Mapping):
        raise TaskError(f"collate gave a {type(batch).__name__}: give a dict of tensors by name")
    for name, tensor in batch.items():
        if not isinstance(tensor, torch.Tensor) or tensor.dim() == 0 or len(tensor) != samples:
            what = f"the shape {tuple(tensor.shape)}" if isinstance(tensor, torch.Tensor) else type(tensor).__name__
            raise TaskError(f"collate gave {what} for '{name}': give a tensor with the {samples} samples in dimension 0")
    return dict(batch)


def weights_of(task: Task, batch: Batch) -> dict[str, float]:
    """By loss, where the task's `weights` is a method."""
    weights, losses = task.weights(batch), task.losses
    if isinstance(weights, Mapping):
        _check_names("weights", weights, losses)
        return {loss: _weight(weights[loss]) for loss in losses}
    if len(losses) > 1:
        raise TaskError(f"weights gave {weights!r} for the losses {', '.join(losses)}: give a dict by loss")
    return {losses[0]: _weight(weights)}


def _weight(value: Any) -> float:
    try:
        weight = float(value)
    except (TypeError, ValueError, RuntimeError):
        raise TaskError(f"weights gave a {type(value).__name__}: give a number, or a dict of numbers by loss") from None
    if not 0 <= weight < float("inf"):
        raise TaskError(f"weights gave {weight}: give a number from 0 up, which the loss is divided by")
    return weight


def rows_of(name: str, result: Any) -> tuple[torch.Tensor, torch.Tensor]:
    if isinstance(result, torch.Tensor):
        return result.contiguous(), torch.empty(0, dtype=torch.int64)
    if isinstance(result, (list, tuple)) and result and all(isinstance(row, torch.Tensor) for row in result):
        if any(row.dim() == 0 for row in result) or len({row.shape[1:] for row in result}) > 1:
            raise TaskError(f"predict gave tensors of the shapes {', '.join(sorted({str(tuple(row.shape)) for row in result})[:3])} for "
                            f"'{name}': those of a list may differ in their first dimension alone, which they need")
        lengths = torch.tensor([len(row) for row in result], dtype=torch.int64)
        return torch.cat(list(result)).contiguous(), lengths
    raise TaskError(f"predict gave a {type(result).__name__} for '{name}': give a tensor with the samples in dimension 0, "
                    "or a list of one tensor a sample")


def _check_names(what: str, given: Iterable[str], names: Iterable[str]) -> None:
    given, names = list(given), list(names)
    if missing := [name for name in names if name not in given]:
        raise TaskError(f"{what} gave no '{missing[0]}', only {', '.join(map(repr, given)) or 'nothing'}")


def metric_names(task: Task) -> list[str]:
    """Of those that `forward` gives."""
    return [metric if isinstance(metric, str) else metric.name for metric in task.metrics if not isinstance(metric, Computed)]


_coarse: set[str] = set()  # sums of 16 bits that were named


def _name_coarse(name: str, value: torch.Tensor) -> None:
    """Once for each sum."""
    if value.dtype in (torch.bfloat16, torch.float16) and name not in _coarse:
        _coarse.add(name)
        warnings.warn(f"forward gave '{name}' in {str(value.dtype).removeprefix('torch.')}, which rounds the sum: compute it "
                      "from values that are .float(), or a loss by cross_entropy, which is fp32 on all devices", stacklevel=2)


def sums_of(results: Any, losses: list[str], metrics: list[str]) -> list[torch.Tensor]:
    names = losses + metrics
    if isinstance(results, torch.Tensor) and len(names) == 1:
        results = {names[0]: results}
    if not isinstance(results, Mapping):
        raise TaskError(f"forward gave a {type(results).__name__}: give a dict of {', '.join(names)}")
    _check_names("forward", results, names)
    for name in names:
        value = results[name]
        if not isinstance(value, torch.Tensor) or value.numel() != 1:
            shape = tuple(value.shape) if isinstance(value, torch.Tensor) else type(value).__name__
            raise TaskError(f"forward gave {shape} for '{name}': give a sum over the micro-batch, a tensor of one number")
        _name_coarse(name, value)
    return [results[name].reshape(()) for name in losses] + [results[name].detach().reshape(()) for name in metrics]
