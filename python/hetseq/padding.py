"""Rows of unequal shapes in a batch: padded to one shape, and where each row's own values lie."""

from __future__ import annotations

from typing import Sequence

import torch

from .task import Batch, Ragged, unequal_dimensions

__all__ = ["extents", "padded_rows", "shape_entry"]


def shape_entry(name: str, field: Ragged) -> str:
    """The batch's entry that tells how far the rows of a field go: (n), or (n, dimensions) where several are unequal."""
    return f"{name}_shape" if len(unequal_dimensions(field.shape)) > 1 else f"{name}_lengths"


def extents(batch: Batch, name: str, field: Ragged) -> list[tuple[slice, ...]]:
    """Of each row of a field, where its values lie among the padding."""
    unequal, told = unequal_dimensions(field.shape), batch[shape_entry(name, field)].tolist()
    if len(unequal) > 1:
        return [tuple(map(slice, shape)) for shape in told]
    before = (slice(None),) * unequal[0]
    return [(*before, slice(length)) for length in told]


def padded_rows(name: str, field: Ragged, rows: Sequence[torch.Tensor]) -> Batch:
    """As the trainer pads the rows of shards."""
    shapes = torch.tensor([row.shape for row in rows], dtype=torch.int64)
    padded = rows[0].new_full((len(rows), *shapes.max(0).values.tolist()), field.padding)
    for target, row in zip(padded, rows):
        target[tuple(map(slice, row.shape))] = row
    unequal = unequal_dimensions(field.shape)
    told = shapes if len(unequal) > 1 else shapes[:, unequal[0]].contiguous()
    return {name: padded, shape_entry(name, field): told}
