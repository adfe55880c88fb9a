"""The samples of a micro-batch, cut, trimmed and padded anew as other cuts of the batch would have them."""

from __future__ import annotations

from typing import Callable, Mapping, Optional, Sequence

import torch

Batch = dict[str, torch.Tensor]

__all__ = ["Samples", "differing_tensor"]


class Samples:
    """`fields`: tensors (n, ...) by name, as the trainer hands them to `collate`: the ragged ones padded, (n, width),
    with their rows' lengths under NAME_lengths.

    `paddings`: by the name of each ragged field, the value behind its rows. `collate`: the task's own, or None.
    `device`: of the batches; that of `fields` is the CPU where there is a `collate`.
    """

    def __init__(self, fields: Mapping[str, torch.Tensor], paddings: Mapping[str, float] = {},
                 collate: Optional[Callable[[Batch], Batch]] = None, device: torch.device = torch.device("cpu")):
        self.fields = dict(fields)
        self.paddings = {name: value for name, value in paddings.items() if name in fields}
        self.collate = collate
        self.device = device
        self.lengths = {name: self.fields[f"{name}_lengths"].tolist() for name in self.paddings}

    def __len__(self) -> int:
        return len(next(iter(self.fields.values())))

    def length(self, sample: int) -> int:
        """Of the longest ragged field."""
        return max((lengths[sample] for lengths in self.lengths.values()), default=1)

    def has_unlike_lengths(self, samples: Sequence[int]) -> bool:
        return any(len({lengths[i] for i in samples}) > 1 for lengths in self.lengths.values())

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
        """What `collate` gets. `trimmed`: to the longest of these rows, plus `extra`; else as they are padded now."""
        index = torch.tensor(list(samples), dtype=torch.int64)
        batch = {name: tensor[index.to(tensor.device)] for name, tensor in self.fields.items()}
        if trimmed:
            for name, padding in self.paddings.items():
                width = max((self.lengths[name][i] for i in samples), default=0)
                rows = batch[name][:, :width]
                batch[name] = torch.cat([rows, rows.new_full((len(rows), extra), padding)], 1)
        return batch

    def collated(self, samples: Sequence[int], extra: int = 0, trimmed: bool = True) -> Batch:
        """What `collate` makes of them, on the CPU; see `given`."""
        batch = {name: tensor.cpu() for name, tensor in self.given(samples, extra, trimmed).items()}
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
