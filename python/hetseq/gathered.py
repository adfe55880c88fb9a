"""What a metric over all predictions of a validation is computed from: kept by each rank, put in order on rank 0."""

from __future__ import annotations

import ctypes
import io
from typing import Any, Mapping, Sequence, Union

import torch

from .padding import extents, shape_entry
from .task import Batch, Ragged, Task, TaskError, computed_metrics

__all__ = ["Kept", "metric_values", "require_targets"]

Column = Union[torch.Tensor, list[torch.Tensor]]
"""Of all samples: a tensor (N, ...), or a tensor a sample where rows have no common shape."""


def _targets(task: Task) -> list[str]:
    return [name for name, field in task.fields.items() if field.is_target]


def require_targets(task: Task, batch: Batch) -> None:
    """Refuses a `collate` that leaves out what the task's `metric` gets."""
    for name in _targets(task) if computed_metrics(task) else ():
        field = task.fields[name]
        shape = shape_entry(name, field) if isinstance(field, Ragged) else ""
        if name not in batch or shape and shape not in batch:
            raise TaskError(f"collate leaves out '{name}' (metric gets the fields with is_target): keep it"
                            + (f", with '{shape}'" if shape else ""))


def _own(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().to("cpu", copy=True).contiguous()


def _row_list(batch: Batch, name: str, field: Ragged) -> list[torch.Tensor]:
    return [row[extent].clone() for row, extent in zip(_own(batch[name]), extents(batch, name, field))]


def _is_one_shape(parts: Sequence[Column]) -> bool:
    return (all(isinstance(part, torch.Tensor) for part in parts) and
            len({(part.shape[1:], part.dtype) for part in parts}) == 1)


def _joined(parts: Sequence[Column]) -> Column:
    return torch.cat(list(parts)) if _is_one_shape(parts) else [row for part in parts for row in part]


class Kept:
    """The predictions and targets of a rank's samples in one validation."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._ids: list[torch.Tensor] = []
        self._columns: dict[str, list[Column]] = {}
        self.bytes = 0

    def add(self, predictions: Mapping[str, tuple[torch.Tensor, torch.Tensor]], ids: torch.Tensor, batch: Batch) -> None:
        """predictions: values by name, with the rows' lengths; these are empty where all rows have one shape."""
        require_targets(self._task, batch)
        self._ids.append(_own(ids))
        for name, (values, lengths) in predictions.items():
            if name in _targets(self._task):
                raise TaskError(f"predict gives '{name}', which is the name of a field too: metric could not tell them "
                                "apart, so give it another name")
            rows = len(lengths) if len(lengths) else len(values) if values.dim() else -1
            if rows != len(ids):
                raise TaskError(f"predict gave {'one number' if rows < 0 else f'{rows} rows'} for '{name}' of {len(ids)} "
                                "samples: give a row a sample")
            self._add(name, list(_own(values).split(lengths.tolist())) if len(lengths) else _own(values))
        for name in _targets(self._task):
            field = self._task.fields[name]
            self._add(name, _row_list(batch, name, field) if isinstance(field, Ragged) else _own(batch[name]))

    def _add(self, name: str, column: Column) -> None:
        self._columns.setdefault(name, []).append(column)
        parts = [column] if isinstance(column, torch.Tensor) else column
        self.bytes += sum(part.numel() * part.element_size() for part in parts)

    def take(self) -> torch.Tensor:
        """All of it as bytes, (n) uint8, and keeps nothing."""
        ids, columns = self._ids, self._columns
        self._ids, self._columns, self.bytes = [], {}, 0
        if not ids:
            return torch.empty(0, dtype=torch.uint8)
        file = io.BytesIO()
        torch.save((torch.cat(ids), {name: _joined(columns.pop(name)) for name in list(columns)}), file)
        return torch.frombuffer(file.getbuffer(), dtype=torch.uint8)


def _in_order(parts: Sequence[torch.Tensor]) -> dict[str, Column]:
    """Predictions and targets of all samples in the order of the data. parts: what `take` gave on each rank."""
    read = [torch.load(io.BytesIO((ctypes.c_char * part.numel()).from_address(part.data_ptr())), weights_only=True)
            for part in parts if part.numel() > 0]  # string_at knows no more than 2 GiB
    order = torch.cat([ids for ids, _ in read]).argsort()
    result: dict[str, Column] = {}
    for name in list(read[0][1]) if read else ():
        column = _joined([columns.pop(name) for _, columns in read])
        result[name] = column[order] if isinstance(column, torch.Tensor) else [column[place] for place in order.tolist()]
    return result


def _number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError):
        raise TaskError(f"metric gave a {type(value).__name__} for '{name}': give one number") from None


def metric_values(task: Task, parts: Sequence[torch.Tensor]) -> list[float]:
    """The values of the task's computed metrics, in their order."""
    names = [metric.name for metric in computed_metrics(task)]
    results = task.metric(_in_order(parts))
    if not isinstance(results, Mapping):
        raise TaskError(f"metric gave a {type(results).__name__}: give a dict of {', '.join(names)}")
    for name in names:
        if name not in results:
            raise TaskError(f"metric gave no '{name}', only {', '.join(map(repr, results)) or 'nothing'}")
    for name in results:
        if name not in names:
            raise TaskError(f"metric gave '{name}', which metrics does not declare: add hetseq.Computed({name!r}) to them")
    return [_number(name, results[name]) for name in names]
