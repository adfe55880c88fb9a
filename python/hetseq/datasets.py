"""The data that a task reads from a dataset of Python in place of HDF5 shards."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import math
import os
import pathlib
import random
import shutil
import sys
import time
from typing import Any, Iterable, Iterator, Mapping, NamedTuple, Optional, Sequence

import torch

from .keys import Key, begin_generators, drawing_from
from .processes import say
from .readers import Readers
from .sample_fields import as_fields, failed
from .streams import Stream
from .task import Bytes, Field, Ragged, Task, TaskError, overrides

__all__ = ["Source", "cache_folder", "is_stream", "numbered_dataset"]

_TELLING = 32                # samples that tell whether a dataset is another one
_ALL_TELL = 64               # of so many all do
_ROUNDING = 0.005            # of a sample's mean and deviation
_IN_PIECE = 64               # samples that a process makes at a time for a shard
_PARTS = 64                  # shards at most
_LEAST_IN_PART = 1000        # samples of a shard
_MOST_OF_DISK = 0.5          # of what is free
_LOOK_AT_DISK = 500          # samples of a stream, whose number nobody knows
_TELL_S = 5                  # between two lines about it
_BLOCK_BYTES = 2 << 20       # as the trainer chooses blocks of shards (docs/data.md)
_CHUNK_BYTES = 256 << 10     # as `write_shards` chooses chunks
_MOST_CHUNKS_IN_TARGET = 16


def cache_folder(given: str) -> pathlib.Path:
    """That of --cache-dir, or the user's own."""
    if given == "none":
        raise TaskError("--cache-dir none, and a dataset needs a folder for its shards or the numbers of its samples: name one")
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return pathlib.Path(given or os.path.join(base, "hetseq")).absolute()


def is_stream(dataset: Any) -> bool:
    return not (hasattr(dataset, "__getitem__") and hasattr(type(dataset), "__len__")) or isinstance(
        dataset, torch.utils.data.IterableDataset)


def numbered_dataset(dataset: Any, name: str, what: str) -> Any:
    """`dataset`, if samples can be read from it. `what`: gave it."""
    if isinstance(dataset, torch.utils.data.DataLoader):
        raise TaskError(f"{what} gave a DataLoader for '{name}', and hetseq makes the batches: give its dataset (loader.dataset); "
                        "what its collate_fn does belongs into the task's collate")
    if isinstance(dataset, Mapping) and all(isinstance(key, str) for key in dataset):
        raise TaskError(f"{what} gave a {type(dataset).__name__} of {', '.join(map(repr, dataset))} for '{name}': give one of them")
    if dataset is None or isinstance(dataset, (str, bytes)) or not (
            hasattr(dataset, "__iter__") or hasattr(dataset, "__getitem__")):
        raise TaskError(f"{what} gave a {type(dataset).__name__} for '{name}': give a dataset, whose samples are dataset[i]")
    if not is_stream(dataset) and len(dataset) == 0:
        raise TaskError(f"{what} gave an empty dataset for '{name}'")
    return dataset


class Piece(NamedTuple):
    """Some samples, as a process made them: by name, a stacked array where all have one shape, else a list of arrays."""
    values: dict[str, Any]
    missing: list[str]  # targets that they lack


class Source:
    """The samples of one split, read and transformed by processes.

    dataset: None where the samples come from shards and are only transformed. buffer: samples of a stream that are read for
    an epoch; 0: it is written as shards.
    """

    def __init__(self, task: Task, dataset: Any, name: str, seed: int, processes: int, buffer: int = 0):
        self.task, self.dataset, self.name, self.seed = task, dataset, name, seed
        self.title = f"'{name}'" if name else "the shards"
        self.number = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=4).digest(), "little") >> 1
        self.stream = Stream(dataset, buffer, self._arrays, seed, self.title) if buffer > 0 else None
        self.is_written = dataset is not None and self.stream is None and is_stream(dataset)  # as shards, from its begin to its end
        self._transforms = overrides(task, "transform")
        self._told = time.monotonic()  # how far writing is
        try:
            self.readers = Readers(self.make, processes, self.title, None if self.stream is None else self.stream.position)
        except BaseException:
            if self.stream is not None:
                self.stream.end()
            raise

    def __len__(self) -> int:
        return len(self.dataset if self.stream is None else self.stream)

    def end(self) -> None:
        self.readers.end()
        if self.stream is not None:
            self.stream.end()

    def _place(self, sample: int) -> str:
        return f"sample {sample} of {self.title} ({type(self.dataset).__name__})"

    def read(self, sample: int) -> dict[str, torch.Tensor]:
        """The fields, as the dataset gives them."""
        try:
            value = self.dataset[sample]
        except IndexError as error:
            raise failed(error, f"{self._place(sample)}, which has {len(self):,} by its length,") from error
        except Exception as error:
            raise failed(error, self._place(sample)) from error
        return as_fields(self.task.fields, value, self._place(sample))

    def make(self, samples: Sequence[int], rows: Optional[Sequence[dict[str, Any]]], epoch: Optional[int], as_stored: bool = False
             ) -> Piece:
        """In a process of its own.

        rows: of each sample, from a shard; None: the dataset gives them. as_stored: without `transform`.
        """
        if self.stream is not None:
            rows = self.stream.rows(epoch or 0, samples, epoch is not None)
        key = Key(self.seed, epoch)
        missing: set[str] = set()

        def made(place: int, sample: int) -> Mapping[str, torch.Tensor]:
            begin_generators(key.of(sample))
            row = self.read(sample) if rows is None else _tensors(rows[place])
            missing.update(self.task.fields.keys() - row.keys())
            return row if as_stored or not self._transforms else self._transformed(row, sample, epoch is not None)

        return Piece(_packed(map(made, range(len(samples)), samples), samples, self.title), sorted(missing))

    def _transformed(self, row: dict[str, Any], sample: int, trains: bool) -> dict[str, torch.Tensor]:
        if self.dataset is not None:  # whose own tensors these may be
            row = {name: value.clone() for name, value in row.items()}
        try:
            made = self.task.transform(row, trains)
        except Exception as error:
            raise failed(error, f"transform of sample {sample} of {self.title}") from error
        if not isinstance(made, Mapping):
            raise TaskError(f"transform gave a {type(made).__name__}: give a dict of a sample's tensors by name")
        return {name: self._tensor(name, value, sample) for name, value in made.items()}

    def _tensor(self, name: str, value: Any, sample: int) -> torch.Tensor:
        try:
            tensor = value.detach() if isinstance(value, torch.Tensor) else torch.as_tensor(value)
        except (TypeError, ValueError, RuntimeError):
            raise TaskError(f"transform of sample {sample} of {self.title} gave a {type(value).__name__} for '{name}', which is no "
                            "tensor: give tensors, arrays or numbers") from None
        field = self.task.fields.get(name)  # torch.tensor([]) has reals, whatever the list would hold
        return tensor.to(field.dtype) if isinstance(field, Ragged) and tensor.numel() == 0 else tensor

    # What tells the data from others.

    @functools.cached_property
    def _told_of(self) -> dict[int, tuple[str, dict[str, list[float]]]]:
        """Of a few samples of a dataset that has numbers, the same ones each time: all their bits, and their features."""
        rows = {sample: self.readers.submit([sample], None, None, True) for sample in _telling_samples(len(self))}
        values = ((sample, self.readers.result(row).values) for sample, row in rows.items())
        return {sample: (_digest(row), _features(row)) for sample, row in values}

    @property
    def telling(self) -> list[str]:
        return [f"sample {sample} of '{self.name}' is {digest}" for sample, (digest, _) in self._told_of.items()]

    def features(self) -> Optional[dict[str, Any]]:
        """By which ranks see that they have the same samples; None: a stream that is written as shards."""
        if self.is_written:
            return None
        return {"samples": len(self), "rows": {str(sample): features for sample, (_, features) in self._told_of.items()}}

    def check_alike(self, first: Mapping[str, Any]) -> None:
        """`first`: the first rank's `features`. Hosts may compute, or decode images, with other roundings."""
        why = f"the first rank's {self.title} is another than this one's"
        how = ("all ranks need the same samples in the same order: sort the names of files, and let nothing depend on the rank or the "
               "time (random numbers that Task.dataset draws are the same everywhere)")
        own = self.features()
        if own["samples"] != first["samples"]:
            raise TaskError(f"{why}: it has {first['samples']:,} samples, not {own['samples']:,}; {how}")
        for sample, features in own["rows"].items():
            if not _alike(features, first["rows"][sample]):
                raise TaskError(f"{why}: sample {sample} differs; {how}")

    @functools.cached_property
    def fingerprint(self) -> str:
        """Of the data and of how they are stored."""
        own = getattr(self.dataset, "fingerprint", None) or getattr(self.dataset, "_fingerprint", None)
        told = [str(own)] if isinstance(own, str) else [] if self.is_written else self.telling
        length = -1 if self.is_written else len(self)
        text = json.dumps([1, type(self.dataset).__qualname__, length, told, _storage(self.task)])
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

    def block_length(self) -> int:
        """As the trainer would choose it for shards of the same samples that `write_shards` wrote."""
        row = self.readers.result(self.readers.submit([0], None, None, True))
        sizes = [values[0].nbytes for values in row.values.values()]
        target = max(_BLOCK_BYTES // max(sum(sizes), 1), 1)
        chunk = max(_CHUNK_BYTES // max(*sizes, 1), 1)
        return target if chunk > _MOST_CHUNKS_IN_TARGET * target else max((target + chunk // 2) // chunk, 1) * chunk

    # Shards of the samples.

    def parts(self) -> int:
        return 1 if self.is_written else max(1, min(_PARTS, len(self) // _LEAST_IN_PART))

    def part_file(self, folder: pathlib.Path, part: int) -> pathlib.Path:
        return folder / f"{self.name}-{part:05}-of-{self.parts():05}.h5"

    def write_parts(self, folder: pathlib.Path, parts: Sequence[int]) -> None:
        """Each file appears when it is whole."""
        from .shards import write_shards

        if not parts:
            return
        self._check_room(folder)
        for part in parts:
            scratch = folder / f"writing-{os.getpid()}-{part}"
            samples = self._samples(part, parts, folder)
            first = next(samples, {})
            fields = [(name, field) for name, field in self.task.fields.items() if name in first]  # targets may be missing
            kept = {name: _numpy_name(field.dtype) for name, field in fields if not isinstance(field, Bytes)}
            ragged = {name: (None,) if isinstance(field, Bytes) else field.shape for name, field in fields if not isinstance(field, Field)}
            try:
                paths = write_shards(itertools.chain([first] if first else [], samples), scratch, name=self.name, ragged=ragged,
                                     rows_per_shard=sys.maxsize, dtypes=kept, compression=1)
                os.replace(paths[0], self.part_file(folder, part))
            finally:
                shutil.rmtree(scratch, ignore_errors=True)

    def _samples(self, part: int, parts: Sequence[int], folder: pathlib.Path) -> Iterator[dict[str, Any]]:
        """Rank 0 says now and then how far it is."""
        before = sum(len(self._range(each)) for each in parts[:parts.index(part)]) if not self.is_written else 0
        own = f" of {sum(len(self._range(each)) for each in parts):,}" if not self.is_written else ""
        hint = ": it is a stream, and is written to its end (--cache-data off reads it while training)" if self.is_written else ""
        for number, sample in enumerate(self._iterated(folder) if self.is_written else self._read(part), before):
            torch.ops.hetseq.progress()
            if torch.ops.hetseq.asked_to_stop():
                raise TaskError(f"asked to stop while {self.title} was written as shards ({number:,} samples of it by now); shards that "
                                "are whole stay")
            if time.monotonic() - self._told > _TELL_S:
                self._told = time.monotonic()
                say(f"rank 0 has written {number:,}{own} samples of {self.title} as shards{hint}")
            yield sample

    def _range(self, part: int) -> range:
        return range(len(self) * part // self.parts(), len(self) * (part + 1) // self.parts())

    def _read(self, part: int) -> Iterator[dict[str, Any]]:
        samples = self._range(part)
        pieces = [samples[first:first + _IN_PIECE] for first in range(0, len(samples), _IN_PIECE)]
        for piece in self.readers.results((list(piece), None, None, True) for piece in pieces):
            names = list(piece.values)
            yield from (dict(zip(names, row)) for row in zip(*piece.values.values()))

    def _drawn(self) -> Iterator[Any]:
        """The samples of a stream. What it draws on the way depends on the seed alone."""
        with drawing_from(self.seed):
            yield from self.dataset

    def _iterated(self, folder: pathlib.Path) -> Iterator[dict[str, Any]]:
        free = shutil.disk_usage(folder).free
        for number, sample in enumerate(self._drawn()):
            if number % _LOOK_AT_DISK == 0 and shutil.disk_usage(folder).free < (1 - _MOST_OF_DISK) * free:
                raise TaskError(f"'{self.name}' is a stream, of which {number:,} samples were written as shards, and {folder} had "
                                f"{free >> 20:,} MiB free, of which they may take {_MOST_OF_DISK:.0%}: name another folder "
                                "(--cache-dir), take fewer samples (itertools.islice), or read it while training "
                                "(--cache-data off)")
            yield self._arrays(sample, f"sample {number} of '{self.name}'")

    def _arrays(self, sample: Any, place: str) -> dict[str, Any]:
        """Of the fields, in memory of their own."""
        return {name: tensor.clone().numpy() for name, tensor in as_fields(self.task.fields, sample, place).items()}

    def _check_room(self, folder: pathlib.Path) -> None:
        """As the first samples tell."""
        if self.is_written:
            return
        some = list(range(0, len(self), max(len(self) // _TELLING, 1)))[:_TELLING]
        piece = self.readers.result(self.readers.submit(some, None, None, True))
        needed = len(self) * sum(row.nbytes for rows in piece.values.values() for row in rows) // len(some)
        free = shutil.disk_usage(folder).free
        if needed > _MOST_OF_DISK * free:
            raise TaskError(f"the samples of '{self.name}' take some {needed >> 20:,} MiB as shards, and {folder} has {free >> 20:,} "
                            f"MiB free, of which they may take {_MOST_OF_DISK:.0%}: name another folder (--cache-dir), or read them from "
                            "the dataset each time (--cache-data off; fields of unequal length need shards)")


def _telling_samples(length: int) -> list[int]:
    """All of a small dataset. Else one of each of as many stretches of equal length, in no regular order, since samples may
    repeat in one."""
    if length <= _ALL_TELL:
        return list(range(length))
    draw = random.Random(length)
    ends = [length * i // _TELLING for i in range(_TELLING + 1)]
    return [0, *(draw.randrange(begin, end) for begin, end in zip(ends[1:-2], ends[2:-1])), length - 1]


def _tensors(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: torch.from_numpy(value) for name, value in row.items()}


def _packed(rows: Iterable[Mapping[str, torch.Tensor]], samples: Sequence[int], title: str) -> dict[str, Any]:
    """Each row is copied before the next is made, which may take its memory."""
    count = len(samples)
    stacked: dict[str, torch.Tensor] = {}
    unlike: dict[str, list[torch.Tensor]] = {}
    for place, row in enumerate(rows):
        if place == 0:
            stacked = {name: value.new_empty((count, *value.shape), device="cpu") for name, value in row.items()}
        if row.keys() != stacked.keys():
            raise TaskError(f"sample {samples[place]} of {title} has {', '.join(row)}, and sample {samples[0]} has {', '.join(stacked)}: give "
                            "the same for all")
        for name, value in row.items():
            together = stacked[name]
            if name not in unlike and (value.shape != together.shape[1:] or value.dtype != together.dtype):
                unlike[name] = list(together[:place])
            if name in unlike:
                unlike[name].append(value.to("cpu", copy=True))
            else:
                together[place] = value
    return {name: [row.numpy() for row in unlike[name]] if name in unlike else together.numpy() for name, together in stacked.items()}


def _digest(piece: Mapping[str, Any]) -> str:
    digest = hashlib.blake2b(digest_size=6)
    for name in sorted(piece):
        value = piece[name][0]
        digest.update(f"{name} {value.dtype} {value.shape}".encode() + value.tobytes())
    return digest.hexdigest()


def _features(piece: Mapping[str, Any]) -> dict[str, list[float]]:
    """By field: the shape, the mean and the standard deviation."""
    values = {name: piece[name][0] for name in sorted(piece)}
    return {name: [*value.shape, *((_number(value.mean(dtype="float64")), _number(value.std(dtype="float64"))) if value.size > 0 else ())]
            for name, value in values.items()}


def _number(value: Any) -> float:
    """As JSON can hold one."""
    return float(value) if math.isfinite(value) else 0.0


def _alike(own: Mapping[str, Sequence[float]], other: Mapping[str, Sequence[float]]) -> bool:
    def near(a: Sequence[float], b: Sequence[float]) -> bool:
        scale = abs(a[-2]) + a[-1] if len(a) > 1 else 0
        return len(a) == len(b) and a[:-2] == b[:-2] and all(abs(x - y) <= _ROUNDING * scale for x, y in zip(a[-2:], b[-2:]))

    return own.keys() == other.keys() and all(near(own[name], other[name]) for name in own)


def _numpy_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _storage(task: Task) -> list[str]:
    return [f"{name} {field}" for name, field in task.fields.items()]
