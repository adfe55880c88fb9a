"""The samples of a micro-batch, cut, trimmed and padded anew as other cuts of the batch would have them."""

from __future__ import annotations

import math
from typing import Callable, Mapping, Optional, Sequence, Union

import torch

from .task import unequal_dimensions

Batch = dict[str, torch.Tensor]

__all__ = ["Samples", "differing_tensor"]


class Samples:
    """`fields`: tensors (n, ...) by name, as the trainer hands them to `collate`: the ragged ones padded, with their rows'
    lengths under NAME_lengths or shapes under NAME_shape; those of bytes as lists of a tensor a sample.

    `paddings`: by the name of each ragged field, the value behind its rows. `collate`: the task's own, or None.
    `device`: of the batches; that of `fields` is the CPU where there is a `collate`. `shapes`: of the rows of ragged
    fields, None for each dimension that is unequal; (None,) where it is not said. `maker`: what a message calls `collate`.
    """

    def __init__(self, fields: Mapping[str, Union[torch.Tensor, list[torch.Tensor]]], paddings: Mapping[str, float] = {},
                 collate: Optional[Callable[[Batch], Batch]] = None, device: torch.device = torch.device("cpu"),
                 shapes: Mapping[str, Sequence[Optional[int]]] = {}, maker: str = "collate"):
        self.fields = dict(fields)
        self.paddings = {name: value for name, value in paddings.items() if name in fields}
        self.collate, self.maker = collate, maker
        self.device = device
        self.unequal = {name: unequal_dimensions(shapes.get(name, (None,))) for name in self.paddings}
        self.extents = {name: self._extents(name) for name in self.paddings}  # (n, unequal dimensions) by name
        self.lengths = {name: [math.prod(row) for row in rows] for name, rows in self.extents.items()}  # positions

    def _extents(self, name: str) -> list[list[int]]:
        """Of each sample, how far it reaches in each unequal dimension of a field."""
        if len(self.unequal[name]) == 1:
            return self.fields[f"{name}_lengths"].unsqueeze(1).tolist()
        return self.fields[f"{name}_shape"][:, self.unequal[name]].tolist()

    def __len__(self) -> int:
        return len(next(iter(self.fields.values())))

    def length(self, sample: int) -> int:
        """Of the longest ragged field."""
        return max((lengths[sample] for lengths in self.lengths.values()), default=1)

    def leading_length(self, sample: int) -> int:
        """Of the longest ragged field whose rows are unequal in their first dimension alone."""
        if not self.unequal:
            return 1
        return max((self.lengths[name][sample] for name, unequal in self.unequal.items() if unequal == [0]), default=0)

    def has_unlike_lengths(self, samples: Sequence[int]) -> bool:
        return any(len({tuple(extents[i]) for i in samples}) > 1 for extents in self.extents.values())

    def chosen(self, count: int) -> list[int]:
        """`count` samples: the first ones, or where rows are ragged some of each length, the longest among them. Empty
        rows are left out where there are enough of others."""
        if not self.paddings:
            return list(range(count))
        by_length = sorted(range(len(self)), key=lambda sample: (self.length(sample), sample))
        filled = [i for i in by_length if all(lengths[i] > 0 for lengths in self.lengths.values())]
        pool = filled if len(filled) >= count else by_length
        step = (len(pool) - 1) / max(count - 1, 1)
        return sorted(pool[round(i * step)] for i in range(count))

    def many(self, most: int) -> list[int]:
        """Up to `most` samples, as many as a micro-batch of the same size of memory may hold: short ones are taken more
        than once."""
        if len(self) >= most or not self.paddings:
            return list(range(min(most, len(self))))
        by_length = sorted((i for i in range(len(self)) if self.length(i) > 0), key=self.length)
        short = by_length[:max(1, len(by_length) // 4)]
        if not short:
            return list(range(len(self)))
        room = len(self) * max(map(self.length, by_length)) // self.length(short[-1])
        count = min(most, room)
        return list(range(len(self))) if count <= len(self) else [short[i % len(short)] for i in range(count)]

    def given(self, samples: Sequence[int], extra: int = 0, trimmed: bool = True) -> Batch:
        """What `collate` gets. `trimmed`: to the longest of these rows, plus `extra`, in each unequal dimension; else as
        they are padded now."""
        index = torch.tensor(list(samples), dtype=torch.int64)
        batch = {name: [rows[i] for i in samples] if isinstance(rows, list) else rows[index.to(rows.device)]
                 for name, rows in self.fields.items()}
        if trimmed:
            for name in self.paddings:
                batch[name] = self._repadded(name, batch[name], samples, extra)
        return batch

    def _repadded(self, name: str, rows: torch.Tensor, samples: Sequence[int], extra: int) -> torch.Tensor:
        size = list(rows.shape)
        for place, dimension in enumerate(self.unequal[name]):
            longest = max((self.extents[name][i][place] for i in samples), default=0)
            rows = rows.narrow(dimension + 1, 0, longest)
            size[dimension + 1] = longest + extra
        padded = rows.new_full(size, self.paddings[name])
        padded[tuple(map(slice, rows.shape))] = rows
        return padded

    def collated(self, samples: Sequence[int], extra: int = 0, trimmed: bool = True) -> Batch:
        """What `collate` makes of them, on the CPU; see `given`."""
        batch = {name: rows if isinstance(rows, list) else rows.cpu()
                 for name, rows in self.given(samples, extra, trimmed).items()}
        return batch if self.collate is None else dict(self.collate(batch))

    def batch(self, samples: Sequence[int], extra: int = 0, trimmed: bool = True) -> Batch:
        """What `forward` gets."""
        batch = self.given(samples, extra, trimmed)
        if self.collate is not None:
            batch = self.collate(batch)
        return {name: tensor.to(self.device) for name, tensor in batch.items()}


def differing_tensor(a: Mapping[str, torch.Tensor], b: Mapping[str, torch.Tensor]) -> str:
    """The name of a tensor that is not the same in both. Tensors of unlike shapes are not compared; floating-point
    numbers may differ by rounding."""
    if a.keys() != b.keys():
        return sorted(a.keys() ^ b.keys())[0]
    for name, one in a.items():
        other = b[name]
        if one.shape != other.shape or one.numel() == 0:
            continue
        if one.is_floating_point():
            one, other = one.double(), other.double()
            size = float(one.abs().nan_to_num(posinf=0.0).max())
            if not torch.allclose(one, other, rtol=1e-5, atol=1e-5 * size, equal_nan=True):
                return name
        elif not torch.equal(one, other):
            return name
    return ""
