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

__all__ = ["Key", "begin_generators", "drawing_from"]


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


def begin_generators(seed: int) -> None:
    """torch's generator of the CPU, Python's and NumPy's (where it is loaded) begin at `seed`. For a process in which nobody
    else draws."""
    torch.default_generator.manual_seed(seed)
    random.seed(seed)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(seed % 2**32)


@contextlib.contextmanager
def drawing_from(seed: int) -> Iterator[None]:
    """What is drawn inside is the same on all ranks and in each run. These generators, but for those of GPUs, go on behind it as
    if nothing had been."""
    numpy = sys.modules.get("numpy")
    python, of_numpy = random.getstate(), numpy and numpy.random.get_state()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed % 2**63)  # of GPUs too, on which a module may be made
        begin_generators(seed % 2**63)
        try:
            yield
        finally:
            random.setstate(python)
            if numpy:
                numpy.random.set_state(of_numpy)
