"""Micro-batches for `forward`, made of the rows of shards or of a dataset's samples."""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import json
import threading
from typing import Any, Iterator, Mapping, NamedTuple, Optional, Sequence

import torch

from .datasets import Source, cache_folder, is_stream, numbered_dataset
from .double import default_type
from .keys import Key, drawing_from
from .padding import extents, padded_rows
from .readers import default_count
from .reading import reading_options, reads_dataset
from .results import collated
from .task import Batch, Bytes, Config, Ragged, Task, TaskError, overrides

__all__ = ["BatchMaker", "generators", "sample_ids"]

_SAMPLE, _SOURCE = "hetseq_sample", "hetseq_source"  # fields of a file that stands for a dataset
_SHARDS = ""                           # the name of the source that transforms rows of shards
_PIECES = 4                            # of a share, for each process
_MOST_IN_PIECE = 32                    # samples
_MOST_ANNOUNCED = 8                    # shares that were announced and not collated to their end


# What `collate` may ask for.

@dataclasses.dataclass(frozen=True)
class _Collation:
    key: Key
    ids: torch.Tensor  # (n) int64


_current = threading.local()


@contextlib.contextmanager
def _collating(collation: _Collation) -> Iterator[None]:
    _current.collation = collation
    try:
        yield
    finally:
        _current.collation = None


def _now() -> _Collation:
    collation = getattr(_current, "collation", None)
    if collation is None:
        raise TaskError("sample_ids and generators are for collate alone: draw in forward by torch, as it stands")
    return collation


def sample_ids(batch: Batch) -> torch.Tensor:
    """(n) int64: the places of the batch's samples in the data. Inside `Task.collate`."""
    return _now().ids.clone()


def generators(batch: Batch) -> list[torch.Generator]:
    """A generator for each sample of the batch. What it draws is a function of the seed, the epoch and the sample; in a
    validation it draws the same each time. Inside `Task.collate`."""
    now = _now()
    return [torch.Generator().manual_seed(now.key.of(sample, purpose=1)) for sample in now.ids.tolist()]


class Made(NamedTuple):
    """A micro-batch for `forward`, and whether it has what losses need."""
    batch: Batch
    has_targets: bool


@dataclasses.dataclass
class _Announced:
    """A share of a batch, whose pieces processes are making."""
    source: Source
    given: Batch
    pieces: list[tuple[int, concurrent.futures.Future]]  # the place of the first sample of each
    count: int


class BatchMaker:
    """For one task and one run."""

    def __init__(self, task: Task):
        self._task = task
        self._sources: dict[str, Source] = {}
        self._announced: dict[int, _Announced] = {}
        self._last = 0  # number of a share that was announced
        self._lock = threading.Lock()  # the loader's thread collates, and the main one does, as in the self-test
        self.seed = 1
        self._settings: dict[str, Any] = {}
        self._cache_dir = ""
        self._kind = "files"  # of the data that --data names; all are read like those

    def configure(self, settings: Mapping[str, Any]) -> None:
        self.seed, self._settings, self._cache_dir = settings["seed"], dict(settings["options"]), settings["cache_dir"]
        self._task.choices = Config(settings, self._task.options)

    def end(self) -> None:
        for source in self._sources.values():
            source.end()
        self._sources.clear()
        self._announced.clear()

    # Where the data are.

    def is_split(self, name: str) -> bool:
        """Whether data of this name are a dataset, and no files."""
        return name in self._task._given_data or reads_dataset(self._task) and torch.ops.hetseq.may_name_split(name)

    def kind(self, name: str) -> str:
        """How the trainer reads data of this name: "files"; "samples", by their numbers; "shards", that are written."""
        if not self.is_split(name):
            if overrides(self._task, "transform"):
                self._source(_SHARDS)
            return "files"
        choice = self._option("cache-data")
        has_ragged = any(isinstance(field, Ragged) for field in self._task.fields.values())
        if choice == "off" and has_ragged:
            raise TaskError(f"--cache-data off, and '{name}' cannot be read without shards (the task has fields of unequal length): leave "
                            "it out, or make samples of one length in the dataset")
        self._kind = "shards" if choice == "on" or has_ragged or self._source(name).is_written else "samples"
        return self._kind

    def locate(self, name: str) -> str:
        """What the trainer needs to open them, as JSON."""
        if not self.is_split(name):
            raise TaskError(f"'{name}' names files, and --data a split of the task's dataset: name both by split, or both by files")
        source = self._source(name)
        if self._kind == "samples" and source.is_written:
            raise TaskError(f"'{name}' is a stream, which is written as shards, and the training data are read by their numbers: give "
                            "--cache-data on, which writes both, or off, which writes none")
        folder = cache_folder(self._cache_dir)
        told = [] if source.is_written else source.telling
        if self._kind == "samples":
            folder.mkdir(parents=True, exist_ok=True)
            return json.dumps({"folder": str(folder), "samples": len(source), "source": source.number, "identity": told,
                               "features": source.features(), "block_length": source.block_length()})
        folder = self._shards(source)
        folder.mkdir(parents=True, exist_ok=True)
        missing = [part for part in range(source.parts()) if not source.part_file(folder, part).exists()]
        return json.dumps({"folder": str(folder), "missing": missing, "identity": told, "features": source.features()})

    def check_alike(self, name: str, first: str) -> None:
        """Raises TaskError where this rank's dataset is another than the first rank's, of which `locate` told."""
        if features := json.loads(first):
            self._source(name).check_alike(features)

    def _shards(self, source: Source) -> Any:
        return cache_folder(self._cache_dir) / f"{source.name}-{source.fingerprint}"

    def write_parts(self, name: str, parts: Sequence[int]) -> None:
        source = self._source(name)
        source.write_parts(self._shards(source), list(parts))

    def first(self, name: str, count: int) -> Batch:
        """A batch of the first samples of a dataset."""
        source = self._source(name)
        if source.is_written:
            raise TaskError(f"a pipeline looks at the first samples of '{name}' before there are shards, and it is a stream: "
                            "give a dataset with numbers, or --cache-data off, or write_shards and name the files")
        ids = torch.arange(min(count, len(source)))
        return self._collated(self._padded(self._made(source, ids, None, None)[0]), ids, None, True).batch

    def _option(self, name: str) -> Any:
        return self._settings.get(name, reading_options()[name].default)

    def _source(self, name: str) -> Source:
        if name not in self._sources:
            dataset = None if name == _SHARDS else numbered_dataset(*self._dataset(name))
            source = Source(self._task, dataset, name, self.seed, self._processes(), self._buffer_of(dataset))
            if any(source.number == other.number for other in self._sources.values()):
                raise TaskError(f"the names of the splits {', '.join(self._sources)} and {name} have one number: rename one")
            self._sources[name] = source
        return self._sources[name]

    def _dataset(self, name: str) -> tuple[Any, str, str]:
        given = self._task._given_data
        if name in given:
            return given[name], name, "hetseq.train"
        if not overrides(self._task, "dataset"):
            raise TaskError(f"'{name}' is no file, and the data came from a script, by hetseq.train: name files, or give the task "
                            "a method dataset")
        with drawing_from(self.seed):  # not by the split: parts of a `random_split` are those of one
            return self._task.dataset(self._task.choices, name), name, f"{type(self._task).__name__}.dataset"

    def _buffer_of(self, dataset: Any) -> int:
        """Samples of a stream that are read for an epoch; 0: it is none, or is written as shards."""
        if dataset is None or not is_stream(dataset) or self._option("cache-data") != "off":
            return 0
        size = int(self._option("shuffle-buffer"))
        if size < 1:
            raise TaskError(f"--shuffle-buffer {size}: give a number of samples from 1 up")
        return size

    def _processes(self) -> int:
        text = self._option("data-workers")
        if text == "auto":
            return default_count()
        if not text.isdigit() or not 1 <= int(text) <= 1000:
            raise TaskError(f"--data-workers {text}: give a number of processes from 1 up, or auto")
        return int(text)

    # Batches.

    def announce(self, given: Batch, ids: torch.Tensor, epoch: Optional[int]) -> int:
        """Begins to make all samples of a share. A number for `take`; 0: each micro-batch is made when it is asked for."""
        source = self._source_of(given)
        if source is None:
            return 0
        with self._lock:
            self._last += 1
            while len(self._announced) >= _MOST_ANNOUNCED:
                del self._announced[next(iter(self._announced))]
            self._announced[self._last] = _Announced(source, given, self._begin(source, given, ids, epoch), len(ids))
            return self._last

    def rows(self, announced: int, first: int, count: int) -> Batch:
        """What was announced of some samples, as the trainer gave it."""
        return {name: rows[first:first + count] for name, rows in self._announced[announced].given.items()}

    def take(self, announced: int, first: int, ids: torch.Tensor, epoch: Optional[int]) -> Made:
        share = self._announced[announced]
        pieces, missing = self._between(share, first, first + len(ids))
        if missing:
            raise TaskError(f"the samples of {share.source.title} have no '{missing[0]}', which the losses need: only data for predictions "
                            "may lack it")
        made = self._collated(self._padded(pieces), ids, epoch, True)
        if first + len(ids) == share.count:
            with self._lock:
                self._announced.pop(announced, None)
        return made

    def make(self, given: Batch, ids: torch.Tensor, epoch: Optional[int]) -> Made:
        source = self._source_of(given)
        if source is None:
            return self._collated(given, ids, epoch, all(name in given for name in self._task.fields))
        pieces, missing = self._made(source, ids, given, epoch)
        return self._collated(self._padded(pieces), ids, epoch, not missing)

    def _collated(self, made: Batch, ids: torch.Tensor, epoch: Optional[int], has_targets: bool) -> Made:
        with default_type, _collating(_Collation(Key(self.seed, epoch), ids)):
            return Made(collated(self._task, made), has_targets)

    def _source_of(self, given: Batch) -> Optional[Source]:
        """That makes these rows; None: they are the fields."""
        if given.keys() == {_SAMPLE, _SOURCE}:
            number = int(given[_SOURCE][0])
            return next(source for source in self._sources.values() if source.number == number)
        return next(iter(self._sources.values())) if overrides(self._task, "transform") else None

    def _begin(self, source: Source, given: Batch, ids: torch.Tensor, epoch: Optional[int]) -> list[
            tuple[int, concurrent.futures.Future]]:
        count = len(ids)
        size = min(max(1, -(-count // (_PIECES * source.readers.count))), _MOST_IN_PIECE)
        rows = None if _SAMPLE in given else self._rows(given)
        samples = (given[_SAMPLE] if _SAMPLE in given else ids).tolist()
        return [(begin, source.readers.submit(samples[begin:begin + size], rows and rows[begin:begin + size], epoch))
                for begin in range(0, count, size)]

    def _rows(self, given: Batch) -> list[dict[str, Any]]:
        """Each sample's own values, without padding, as arrays that can be sent."""
        count = len(next(iter(given.values())))
        rows: list[dict[str, Any]] = [{} for _ in range(count)]
        for name, field in self._task.fields.items():
            if name not in given:
                continue
            found = extents(given, name, field) if isinstance(field, Ragged) else [()] * count
            for row, values, extent in zip(rows, given[name], found):
                row[name] = values.numpy()[extent] if extent else values.numpy()
        return rows

    def _between(self, share: _Announced, begin: int, end: int) -> tuple[dict[str, list[Any]], list[str]]:
        """By name, the arrays of samples [begin, end) of a share; and the targets that they lack."""
        made: dict[str, list[Any]] = {}
        missing: list[str] = []
        for place, (first, future) in enumerate(share.pieces):
            behind = share.pieces[place + 1][0] if place + 1 < len(share.pieces) else share.count
            if first >= end or behind <= begin:
                continue
            piece = share.source.readers.result(future)
            missing += piece.missing
            for name, values in piece.values.items():
                made.setdefault(name, []).append(values[max(begin - first, 0):min(behind, end) - first])
        return made, missing

    def _made(self, source: Source, ids: torch.Tensor, given: Optional[Batch], epoch: Optional[int]) -> tuple[
            dict[str, list[Any]], list[str]]:
        given = {_SAMPLE: ids} if given is None else given
        share = _Announced(source, given, self._begin(source, given, ids, epoch), len(ids))
        return self._between(share, 0, len(ids))

    def _padded(self, made: Mapping[str, list[Any]]) -> Batch:
        """From pieces of samples to tensors of all of them."""
        batch: Batch = {}
        for name, pieces in made.items():
            alike = all(not isinstance(piece, list) and piece.shape[1:] == pieces[0].shape[1:] and piece.dtype == pieces[0].dtype
                        for piece in pieces)
            field = self._task.fields.get(name)
            if isinstance(field, Ragged) and all(row.ndim == len(field.shape) for piece in pieces for row in piece):
                if len(types := {row.dtype for piece in pieces for row in piece}) > 1:
                    raise TaskError(f"'{name}' has samples of unlike types ({', '.join(sorted(map(str, types)))}): give tensors of one type in "
                                    "transform")
                batch.update(padded_rows(name, field, [torch.from_numpy(row) for piece in pieces for row in piece]))
            elif isinstance(field, Bytes) and all(row.ndim == 1 and row.dtype == "uint8" for piece in pieces for row in piece):
                batch[name] = [torch.from_numpy(row) for piece in pieces for row in piece]
            elif alike:
                batch[name] = torch.cat([torch.from_numpy(piece) for piece in pieces])
            else:
                shapes = sorted({str(tuple(row.shape)) for piece in pieces for row in piece})
                raise TaskError(f"'{name}' has samples of unlike shapes or types ({', '.join(shapes[:3])}): make them equal in transform "
                                "or in the dataset, or declare a field of unequal length")
        return batch
