"""Random numbers of a sample outside of forward, as functions of the seed, the epoch and the sample."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import random
import struct
import sys
from typing import Iterator, Optional

import torch

__all__ = ["Key", "keyed_generators"]


@dataclasses.dataclass(frozen=True)
class Key:
    """What the draws for all samples of an epoch depend on. `epoch` counts from 0; None: evaluation, which draws the
    same each time."""
    seed: int
    epoch: Optional[int]

    def of(self, sample: int, purpose: int = 0) -> int:
        """In [0, 2^63). `purpose` tells draws of one sample apart."""
        epoch = -1 if self.epoch is None else self.epoch
        packed = struct.pack("<Qqqq", self.seed % 2**64, epoch, sample, purpose)
        return int.from_bytes(hashlib.blake2b(packed, digest_size=8).digest(), "little") >> 1


@contextlib.contextmanager
def keyed_generators(seed: int) -> Iterator[None]:
    """Inside, torch's generator of the CPU, Python's and NumPy's (where it is loaded) begin at `seed`; afterwards they are
    as before. For a process, or a time, in which nobody else draws."""
    numpy = sys.modules.get("numpy")
    before = torch.get_rng_state(), random.getstate(), numpy and numpy.random.get_state()
    torch.default_generator.manual_seed(seed)
    random.seed(seed)
    if numpy:
        numpy.random.seed(seed % 2**32)
    try:
        yield
    finally:
        torch.set_rng_state(before[0])
        random.setstate(before[1])
        if numpy:
            numpy.random.set_state(before[2])
