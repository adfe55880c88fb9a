"""Writes shards, the HDF5 files that hetseq trains from, out of arrays, samples, CSV files and Hugging Face datasets.

The functions run in one process, without MPI, and need NumPy and h5py. docs/data.md describes the files.
"""
from __future__ import annotations

import csv
import gzip
import itertools
import os
import pathlib
import secrets
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Optional

from .ragged_rows import (RowShape, check_row_shape, common_shape, declared_shapes, found_shape, is_bytes, row_values,
                          unequal_rows)

if TYPE_CHECKING:
    import numpy as np

__all__ = ["from_csv", "from_dataset", "from_npz", "write_shards"]

_SHARD_BYTES = 1 << 30      # of values, before compression
_BATCH_BYTES = 16 << 20     # of values that are in memory before they are written
_BATCH_SAMPLES = 1000       # at most, and as many are looked at before the fields' types are chosen
_CHUNK_BYTES = 256 << 10    # of a field with rows of one shape
_VALUES_IN_CHUNK = 65536    # of a ragged field
_OFFSETS_IN_CHUNK = 4096
_GZIP_LEVEL = 4
_UNFINISHED = "prepare.unfinished"  # hetseq reads no folder that holds this file


def write_shards(
    data: Mapping[str, Any] | Iterable[Mapping[str, Any]],
    folder: str | os.PathLike[str],
    *,
    name: str = "train",
    rows_per_shard: int | None = None,
    compression: str | int | None = "gzip",
    ragged: Iterable[str] | Mapping[str, Sequence[int | None]] = (),
    dtypes: Mapping[str, Any] | None = None,
    overwrite: bool = False,
) -> list[pathlib.Path]:
    """Writes `data` as FOLDER/NAME-00000-of-00002.h5 and so on, and returns the paths.

    data: either a dict of fields, each an array or tensor with the samples in its first dimension (memory-mapped arrays
        are read piece by piece), or a list of rows; or an iterable of samples, each a dict of numbers, lists, arrays or
        tensors, of which about 16 MiB are in memory at a time. Of what has a length, a Dataset of torch too, so many
        samples are taken; a DataLoader holds batches, so that its dataset is to be given. What never ends is never
        written: on a terminal a line tells the count of samples.
    name: what the files' names begin with.
    rows_per_shard: samples of a file; None for files of about 1 GiB before compression.
    compression: "gzip", a level of gzip from 1 to 9, or None.
    ragged: fields whose rows are unequal, or a dict of them that says how: {"sound": (None, 80), "image": (3, None, None)},
        None for each dimension that is unequal. A list of unequal rows is recognised, and samples are where the first
        1,000 differ. Such a field NAME is stored as the datasets NAME and NAME_offsets, and NAME_shape where several
        dimensions are unequal. Rows that are `bytes` are a ragged field of uint8, for hetseq.Bytes.
    dtypes: the NumPy types to store fields in, such as {"input_ids": "uint16"}, where they are not those of the data. A
        value that does not fit is an error.
    overwrite: replaces shards of this name in the folder, once the new ones are complete.

    Stored are integers, floating-point numbers of 2, 4 or 8 bytes that are finite, and booleans. The files appear under
    their names when all are written; after an error there are none.

        hetseq.write_shards({"images": images, "labels": labels}, "shards")
        hetseq.write_shards(({"input_ids": tokenizer(line)["input_ids"]} for line in open("text")), "shards")

    Raises ValueError or TypeError for data that cannot be stored, FileExistsError where such shards exist, ImportError
    without h5py.
    """
    ragged = declared_shapes(ragged)
    if isinstance(data, Mapping):
        for field, values in data.items():
            if field not in ragged or ragged[field] is None:
                ragged.update({field: shape for shape in [unequal_rows(values)] if shape})
        batches = _slices(data)
    else:
        samples = iter(_samples(data))
        first = list(itertools.islice(samples, 1))
        ragged = {**_bytes_fields(first[0] if first else {}), **ragged}
        batches = _gathered(itertools.chain(first, samples))
    return _write(batches, folder, name=name, rows_per_shard=rows_per_shard, compression=compression, ragged=ragged,
                  dtypes=dtypes, overwrite=overwrite)


def from_npz(
    path: str | os.PathLike[str], folder: str | os.PathLike[str], *, fields: Sequence[str] | None = None, **options: Any
) -> list[pathlib.Path]:
    """Writes the arrays of a NumPy .npz file as shards; all are in memory at once.

    fields: those to take, None for all. options: as those of `write_shards`, whose errors it raises.
    """
    np = _import_numpy()
    with np.load(path, allow_pickle=False) as arrays:
        _check_names(fields, arrays.files, os.fspath(path))
        return write_shards({field: arrays[field] for field in fields or arrays.files}, folder, **options)


def from_csv(
    path: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    columns: Sequence[str] | Mapping[str, str | Sequence[str]] | None = None,
    delimiter: str = ",",
    **options: Any,
) -> list[pathlib.Path]:
    """Writes the numbers of a CSV file (or .csv.gz), whose first line names the columns, as shards, a line a sample.

    columns: those to take, each as a field of its own (None: all); or a dict of fields, each one column or several:
        {"features": ["age", "income"], "label": "bought"} makes "features" (n, 2) and "label" (n).
    options: as those of `write_shards`, whose errors it raises. Without `dtypes`, a field is int64 where the first
        1,000 lines hold integers only, else float64.
    """
    path = os.fspath(path)
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", newline="", encoding="utf-8-sig") as file:
        lines = csv.reader(file, delimiter=delimiter)
        header = next(lines, None)
        if not header:
            raise ValueError(f"{path} is empty: its first line must name the columns")
        table = _Table(path, lines, header, columns, dict(options.get("dtypes") or {}))
        return write_shards(table.samples(), folder, **options)


def from_dataset(
    dataset: Any,
    folder: str | os.PathLike[str],
    *,
    fields: Sequence[str] | Mapping[str, str] | None = None,
    **options: Any,
) -> list[pathlib.Path]:
    """Writes one split of a Hugging Face dataset (of the package `datasets`, streamed ones too) as shards.

    fields: the columns to take, None for all; or a dict {field: column}. options: as those of `write_shards`, whose
    errors it raises. Columns of lists become ragged fields where the first 1,000 samples differ in length.
    """
    if isinstance(dataset, Mapping):
        raise TypeError(f"this dataset has the splits {', '.join(map(str, dataset))}: write each one, dataset['train'] "
                        "with name='train', into files of its own")
    if not hasattr(dataset, "with_format"):
        raise TypeError(f"a {type(dataset).__name__} is no dataset of the package `datasets`: give the samples to write_shards")
    names = fields if isinstance(fields, Mapping) else {field: field for field in fields or ()}
    if getattr(dataset, "column_names", None):
        names = names or {column: column for column in dataset.column_names}
        _check_names(list(names.values()), dataset.column_names, "the dataset")

    def batches() -> Iterator[dict[str, Any]]:
        for batch in dataset.with_format("numpy").iter(batch_size=_BATCH_SAMPLES):
            chosen = names or {column: column for column in batch}
            _check_names(list(chosen.values()), list(batch), "the dataset")
            yield {field: batch[column] for field, column in chosen.items()}

    return _write(batches(), folder, **options)


def _import_numpy() -> Any:
    try:
        import numpy
    except ImportError as error:
        raise ImportError("shards are written by NumPy and h5py: pip install h5py") from error
    return numpy


def _import_h5py() -> Any:
    try:
        import h5py
    except ImportError as error:
        raise ImportError("shards are written by h5py, which this Python lacks: pip install h5py") from error
    return h5py


def _check_names(wanted: Sequence[str] | None, existing: Sequence[str], place: str) -> None:
    for name in wanted or ():
        if name not in existing:
            raise ValueError(f"{place} has no {name!r}; it has {', '.join(map(repr, existing))}")


# Batches: dicts of fields, each an array (n, ...) or a list of n rows.


def _array(values: Any, place: str) -> np.ndarray:
    """As a NumPy array of a type that can be stored."""
    np = _import_numpy()
    if is_bytes(values):
        return np.frombuffer(values, np.uint8)
    if hasattr(values, "detach"):
        if str(values.dtype) == "torch.bfloat16":
            raise TypeError(f"{place} is bfloat16, which HDF5 lacks: give values.float() or values.half()")
        values = values.detach().cpu().numpy()
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{place} is no array ({error}): give rows whose own rows are equally long, or pad them") from error
    if array.dtype.kind in "biu" or (array.dtype.kind == "f" and array.dtype.itemsize <= 8):
        return array
    what = "text" if array.dtype.kind in "SUT" else f"of type {array.dtype}"
    raise TypeError(f"{place} is {what}, and shards hold integers, floating-point numbers of up to 8 bytes and "
                    "booleans: convert it (text to the ids of a tokenizer), or leave it out")


def _is_array(values: Any) -> bool:
    return hasattr(values, "shape") and hasattr(values, "dtype") and str(values.dtype) != "object"


def _column(values: Any, place: str, first: int) -> np.ndarray | list[np.ndarray]:
    """An array, or a list of rows where `values` is a sequence of rows; `first`: the number of the first sample."""
    if _is_array(values):
        return _array(values, place)
    return [_array(row, f"{place}, sample {first + i},") for i, row in enumerate(values)]


def _length(field: str, values: Any) -> int:
    if _is_array(values) and len(values.shape) == 0:
        raise ValueError(f"field {field!r} is a single number: its first dimension must be the samples")
    try:
        return len(values)
    except TypeError as error:
        raise TypeError(f"field {field!r} is no array ({type(values).__name__}): give an array, a tensor or a list of "
                        "rows") from error


def _bytes_fields(sample: Any) -> dict[str, RowShape]:
    """The fields of bytes, which are ragged however long their first rows are."""
    return {field: (None,) for field, value in sample.items() if is_bytes(value)} if isinstance(sample, Mapping) else {}


def _slices(data: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Whole fields as batches of bounded size."""
    lengths = {field: _length(field, values) for field, values in data.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError("the fields have unequal numbers of samples: "
                         + ", ".join(f"{field!r} {length:,}" for field, length in lengths.items()))
    total = next(iter(lengths.values()), 0)
    are_arrays = all(_is_array(values) for values in data.values())
    sample_bytes = sum(_array(values[:1], f"field {field!r}").nbytes
                       for field, values in data.items() if _is_array(values))
    step = max(1, _BATCH_BYTES // max(sample_bytes, 1))
    if not are_arrays:
        step = min(step, _BATCH_SAMPLES)
    for begin in range(0, total, step):
        yield {field: _column(values[begin:begin + step], f"field {field!r}", begin) for field, values in data.items()}


def _is_data_loader(data: Any) -> bool:
    """Without importing torch, which need not be there."""
    loader = getattr(sys.modules.get("torch.utils.data"), "DataLoader", None)
    return loader is not None and isinstance(data, loader)


def _samples(data: Any) -> Iterator[Mapping[str, Any]]:
    """Of an iterable, or of what has a length and gives samples by number. It ends where its length says."""
    if _is_data_loader(data):
        raise TypeError("a DataLoader gives batches, and shards hold samples, which hetseq makes batches of: give its dataset "
                        "(loader.dataset); what its collate_fn does belongs into the task's collate")
    if isinstance(data, (str, bytes)) or not (hasattr(data, "__iter__") or hasattr(data, "__getitem__")):
        raise TypeError(f"the data is a {type(data).__name__}: give a dict of arrays, or an iterable of samples, each a dict "
                        "of fields")
    count = _declared_length(data)
    if count is None:
        if not hasattr(data, "__iter__"):
            raise TypeError(f"{type(data).__name__} gives samples by number and has no __len__, so that it has no end: add "
                            "__len__, or give an iterator that ends")
        yield from data
        return
    if not hasattr(data, "__iter__"):
        for number in range(count):
            try:
                yield data[number]
            except (IndexError, KeyError) as error:
                raise _ends_early(data, number, count) from error
        return
    number = 0
    for number, sample in enumerate(data, 1):
        if number > count:
            raise ValueError(f"{type(data).__name__} says that it has {count:,} samples (__len__) and goes on: mend its "
                             "__len__, or give an iterator of what is wanted (itertools.islice)")
        yield sample
    if number < count:
        raise _ends_early(data, number, count)


def _declared_length(data: Any) -> int | None:
    """None for a stream, whose length, where it gives one, is an estimate."""
    stream = getattr(sys.modules.get("torch.utils.data"), "IterableDataset", None)
    if not hasattr(type(data), "__len__") or (stream is not None and isinstance(data, stream)):
        return None
    try:
        return len(data)
    except (TypeError, NotImplementedError):
        return None


def _ends_early(data: Any, number: int, count: int) -> ValueError:
    return ValueError(f"{type(data).__name__} says that it has {count:,} samples (__len__) and ends after {number:,}: mend its "
                      "__len__, or give an iterator of what there is")


def _told(batches: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Tells a terminal every other second how many samples have come."""
    samples, told, end = 0, time.monotonic(), ""
    try:
        for batch in batches:
            yield batch
            samples += len(next(iter(batch.values()), ()))
            if time.monotonic() - told > 2 and sys.stderr.isatty():
                told, end = time.monotonic(), "\n"
                print(f"\r{samples:,} samples so far", end="", file=sys.stderr, flush=True)
    finally:
        print(end=end, file=sys.stderr)


def _gathered(samples: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Samples as batches of bounded size."""
    columns: dict[str, list[np.ndarray]] = {}
    gathered = gathered_bytes = 0
    for number, sample in enumerate(samples):
        if not isinstance(sample, Mapping):
            raise TypeError(f"sample {number} is no dict of fields ({type(sample).__name__}): yield "
                            "{'images': image, 'labels': label} for each sample")
        if number == 0:
            columns = {field: [] for field in sample}
        elif sample.keys() != columns.keys():
            raise ValueError(f"sample {number} has the fields {', '.join(map(repr, sample))}, the first one "
                             f"{', '.join(map(repr, columns))}: all samples must have the same")
        for field, rows in columns.items():
            rows.append(_array(sample[field], f"field {field!r}, sample {number},"))
            gathered_bytes += rows[-1].nbytes
        gathered += 1
        if gathered == _BATCH_SAMPLES or gathered_bytes >= _BATCH_BYTES:
            yield columns
            columns = {field: [] for field in columns}
            gathered = gathered_bytes = 0
    if gathered:
        yield columns


class _Table:
    """The lines of a CSV file as samples."""

    def __init__(self, path: str, lines: Iterator[list[str]], header: list[str],
                 columns: Sequence[str] | Mapping[str, str | Sequence[str]] | None, dtypes: Mapping[str, Any]):
        self.path = path
        self.header = header
        if not isinstance(columns, Mapping):
            columns = {column: column for column in (header if columns is None else columns)}
        self.fields: dict[str, int | list[int]] = {}
        for field, chosen in columns.items():
            _check_names([chosen] if isinstance(chosen, str) else chosen, header, path)
            self.fields[field] = (header.index(chosen) if isinstance(chosen, str)
                                  else [header.index(column) for column in chosen])
        numbered = ((number, cells) for number, cells in enumerate(lines, 2) if cells)
        first = list(itertools.islice(numbered, _BATCH_SAMPLES))
        self.lines = itertools.chain(first, numbered)
        self.kinds = {field: self._kind(at, first) if field not in dtypes else self._kind_of(dtypes[field])
                      for field, at in self.fields.items()}

    @staticmethod
    def _kind_of(dtype: Any) -> type:
        return float if _import_numpy().dtype(dtype).kind == "f" else int

    def _kind(self, at: int | list[int], lines: list[tuple[int, list[str]]]) -> type:
        for _, cells in lines:
            for column in [at] if isinstance(at, int) else at:
                try:
                    int(cells[column])
                except (ValueError, IndexError):
                    return float
        return int

    def _number(self, line: int, cells: list[str], column: int, kind: type) -> int | float:
        try:
            return kind(cells[column])
        except (ValueError, IndexError) as error:
            found = repr(cells[column]) if column < len(cells) else "nothing"
            what = "an integer (name another type in dtypes)" if kind is int else "a number"
            raise ValueError(f"{self.path}, line {line}, column {self.header[column]!r}: found {found}, expected {what}"
                             ) from error

    def samples(self) -> Iterator[dict[str, Any]]:
        for line, cells in self.lines:
            if len(cells) > len(self.header):
                raise ValueError(f"{self.path}, line {line} has {len(cells)} columns, and the first line names "
                                 f"{len(self.header)}: look for a delimiter too many")
            yield {field: self._number(line, cells, at, self.kinds[field]) if isinstance(at, int)
                   else [self._number(line, cells, column, self.kinds[field]) for column in at]
                   for field, at in self.fields.items()}


# Shards


class _Field:
    """What all shards hold under one name, decided by the first batch.

    ragged_shape: of a ragged field's rows, None for each dimension that is unequal; None for a field that is not ragged.
    """

    def __init__(self, name: str, values: Any, is_ragged: bool, given_shape: Optional[RowShape], dtype: Any):
        np = _import_numpy()
        rows = values if isinstance(values, list) else [values[0]]
        self.name = name
        self.ragged_shape = given_shape or found_shape(name, rows, is_ragged)
        self.row_shape = rows[0].shape
        found = np.result_type(*({row.dtype for row in rows if row.size} or {rows[0].dtype}))  # [] is of no type
        self.dtype = np.dtype(found if dtype is None else dtype).newbyteorder("=")
        _array(np.empty(0, self.dtype), f"the type of field {name!r}")

    @property
    def is_ragged(self) -> bool:
        return self.ragged_shape is not None

    @property
    def has_shapes(self) -> bool:
        """Whether a dataset of the rows' shapes stands beside the values."""
        return self.is_ragged and self.ragged_shape.count(None) > 1

    def rows(self, values: Any, first: int) -> Any:
        """The batch's values in the type to store: an array (n, ...), or a list of n rows if ragged. `first`: the
        number of its first sample."""
        np = _import_numpy()
        if self.is_ragged:
            return [self._converted(row, first + i) for i, row in enumerate(values)]
        if isinstance(values, list):
            for i, row in enumerate(values):
                self._check_shape(row.shape, first + i)
            if len({row.dtype for row in values}) > 1:  # an error names the sample
                return np.stack([self._converted(row, first + i) for i, row in enumerate(values)])
            values = np.stack(values)
        self._check_shape(values.shape[1:], first)
        return self._converted(values, first, samples=True)

    def _check_shape(self, shape: tuple[int, ...], sample: int) -> None:
        if shape != self.row_shape:
            advice = ""
            if len(shape) == len(self.row_shape) > 0:
                common = common_shape([shape, self.row_shape])
                advice = f": give ragged={[self.name] if common == (None,) else {self.name: common}}"
            raise ValueError(f"field {self.name!r}, sample {sample}, has the shape {shape}, those before "
                             f"{self.row_shape}{advice}")

    def _converted(self, values: np.ndarray, first: int, samples: bool = False) -> np.ndarray:
        np = _import_numpy()
        if self.is_ragged:
            check_row_shape(self.name, first, values.shape, self.ragged_shape)
        given = values
        if values.dtype != self.dtype:
            if values.size == 0:
                return values.astype(self.dtype)
            are_integers = values.dtype.kind in "iu" and self.dtype.kind in "iu"
            if not are_integers and not np.can_cast(values.dtype, self.dtype, "same_kind"):
                raise TypeError(f"field {self.name!r}, sample {first}, is of type {values.dtype}, which is not stored "
                                f"as {self.dtype}: name another type in dtypes, or convert it")
            with np.errstate(over="ignore"):
                values = given.astype(self.dtype)
            if are_integers:
                self._refuse(values != given, given, first, samples, f"does not fit {self.dtype}")
        if self.dtype.kind == "f":
            self._refuse(~np.isfinite(values), given, first, samples,
                         f"is not finite as {self.dtype}, which hetseq refuses in data")
        return values

    def _refuse(self, bad: np.ndarray, values: np.ndarray, first: int, samples: bool, reason: str) -> None:
        np = _import_numpy()
        if np.any(bad):
            sample = first + (int(np.argwhere(bad)[0][0]) if samples else 0)
            raise ValueError(f"field {self.name!r}, sample {sample}: the value {np.extract(bad, values)[0]} {reason}")


class _Shard:
    """One file, under a temporary name."""

    def __init__(self, path: pathlib.Path, fields: list[_Field], compression: int | None, attributes: Mapping[str, str]):
        self.path = path
        self.samples = 0
        self.bytes = 0
        self.offsets = {field.name: 0 for field in fields if field.is_ragged}
        oldest = "v108" if attributes else "earliest"  # whose attributes may be larger than 64 KiB
        self.file = _import_h5py().File(path, "x", libver=(oldest, "v110"), locking=False)
        self.file.attrs.update(attributes)
        filters: dict[str, Any] = {"shuffle": True, "compression": compression} if compression else {}
        for field in fields:
            if field.is_ragged:
                self._create(field.name, (), field.dtype, _VALUES_IN_CHUNK, filters)
                self._create(f"{field.name}_offsets", (), "int64", _OFFSETS_IN_CHUNK, filters)
                self._append(f"{field.name}_offsets", [0])
                if field.has_shapes:
                    self._create(f"{field.name}_shape", (len(field.ragged_shape),), "int64", _OFFSETS_IN_CHUNK, filters)
            else:
                row_bytes = field.dtype.itemsize
                for length in field.row_shape:
                    row_bytes *= max(length, 1)
                self._create(field.name, field.row_shape, field.dtype, max(1, _CHUNK_BYTES // row_bytes), filters)

    def _create(self, name: str, row: tuple[int, ...], dtype: Any, rows_in_chunk: int, filters: dict[str, Any]) -> None:
        self.file.create_dataset(name, shape=(0, *row), maxshape=(None, *row), dtype=dtype, track_times=False,
                                 chunks=(rows_in_chunk, *(max(length, 1) for length in row)), **filters)

    def _append(self, name: str, rows: Any) -> None:
        dataset = self.file[name]
        begin = dataset.shape[0]
        dataset.resize(begin + len(rows), axis=0)
        dataset[begin:] = rows

    def append(self, field: _Field, rows: Any) -> None:
        np = _import_numpy()
        if not field.is_ragged:
            self._append(field.name, rows)
            self.bytes += rows.nbytes
            return
        values = row_values(rows)
        ends = self.offsets[field.name] + np.cumsum([row.size for row in rows], dtype="int64")
        self._append(field.name, values)
        self._append(f"{field.name}_offsets", ends)
        if field.has_shapes:
            self._append(f"{field.name}_shape", [row.shape for row in rows])
        self.offsets[field.name] = int(ends[-1])
        self.bytes += values.nbytes + ends.nbytes

    def close(self) -> None:
        if self.file:
            self.file.close()

    def finish(self) -> None:
        """On disk, still under its temporary name."""
        self.close()
        with open(self.path, "rb+") as file:
            os.fsync(file.fileno())


class _Writer:
    """All shards of one name."""

    def __init__(self, folder: pathlib.Path, name: str, rows_per_shard: int | None, compression: int | None,
                 attributes: Mapping[str, str]):
        self.folder, self.name, self.attributes = folder, name, attributes
        self.rows_per_shard, self.compression = rows_per_shard, compression
        self.fields: list[_Field] = []
        self.shards: list[_Shard] = []
        self.samples = 0

    def _shard(self) -> tuple[_Shard, int | None]:
        """The one to write to, and how many samples it still takes (None: any number)."""
        last = self.shards[-1] if self.shards else None
        is_full = last and (last.bytes >= _SHARD_BYTES if self.rows_per_shard is None
                            else last.samples == self.rows_per_shard)
        if last is None or is_full:
            if last:
                last.finish()
            path = self.folder / f"{self.name}-{len(self.shards):05}.h5.tmp-{os.getpid()}-{secrets.token_hex(8)}"
            last = _Shard(path, self.fields, self.compression, self.attributes)
            self.shards.append(last)
        return last, None if self.rows_per_shard is None else self.rows_per_shard - last.samples

    def append(self, batch: Mapping[str, Any]) -> None:
        rows = {field.name: field.rows(batch[field.name], self.samples) for field in self.fields}
        count = len(next(iter(rows.values())))
        begin = 0
        while begin < count:
            shard, room = self._shard()
            end = count if room is None else min(begin + room, count)
            for field in self.fields:
                shard.append(field, rows[field.name][begin:end])
            shard.samples += end - begin
            begin = end
        self.samples += count

    def commit(self, former: list[pathlib.Path]) -> list[pathlib.Path]:
        """Removes the `former` ones and gives these their names. Until all have them, the folder is not read."""
        self.shards[-1].finish()
        paths = [self.folder / f"{self.name}-{i:05}-of-{len(self.shards):05}.h5" for i in range(len(self.shards))]
        mark = self.folder / _UNFINISHED
        is_others = mark.exists() and f"The shards {self.name}-* " not in mark.read_text()  # which are not whole yet: it stays
        if not is_others:
            mark.write_text(f"The shards {self.name}-* are being replaced. If nothing does so any more, write them again with "
                            "overwrite=True.\n")
        for path in former:
            path.unlink()
        for shard, path in zip(self.shards, paths):
            os.replace(shard.path, path)
        if not is_others:
            mark.unlink(missing_ok=True)
        descriptor = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        return paths

    def abandon(self) -> None:
        for shard in self.shards:
            shard.close()
            shard.path.unlink(missing_ok=True)


def _fields(batch: Mapping[str, Any], ragged: Mapping[str, Optional[RowShape]], dtypes: Mapping[str, Any]) -> list[_Field]:
    if not batch:
        raise ValueError("the data has no fields: give each field of a sample under its name")
    for given, names in (("ragged", set(ragged)), ("dtypes", set(dtypes))):
        for name in sorted(names - batch.keys()):
            raise ValueError(f"{given} names {name!r}, which is no field of the data; "
                             f"it has {', '.join(map(repr, batch))}")
    for name in batch:
        if not isinstance(name, str) or not name or "/" in name or name == ".":
            raise ValueError(f"{name!r} is no name of a field: take letters, digits and _")
    fields = [_Field(name, values, name in ragged, ragged.get(name), dtypes.get(name)) for name, values in batch.items()]
    for field in fields:
        for suffix, what in (("offsets", field.is_ragged), ("shape", field.has_shapes)):
            if what and f"{field.name}_{suffix}" in batch:
                raise ValueError(f"field '{field.name}_{suffix}' stands where the ragged field {field.name!r} has its "
                                 f"{'offsets' if suffix == 'offsets' else 'shapes'}: name it otherwise")
    return fields


def _gzip_level(compression: str | int | None) -> int | None:
    if compression is None or compression == "gzip":
        return None if compression is None else _GZIP_LEVEL
    if isinstance(compression, int) and not isinstance(compression, bool) and 1 <= compression <= 9:
        return compression
    raise ValueError(f"compression={compression!r} is unknown: give 'gzip', its level from 1 to 9, or None")


def _as_rows(values: Any) -> Any:
    """Batches of a dataset hold arrays, arrays of objects and lists."""
    return values if _is_array(values) else list(values)


def _write(
    batches: Iterable[Mapping[str, Any]],
    folder: str | os.PathLike[str],
    *,
    name: str = "train",
    rows_per_shard: int | None = None,
    compression: str | int | None = "gzip",
    ragged: Iterable[str] | Mapping[str, Sequence[int | None]] = (),
    dtypes: Mapping[str, Any] | None = None,
    overwrite: bool = False,
    attributes: Mapping[str, str] | None = None,
) -> list[pathlib.Path]:
    """`write_shards` for dicts of fields, each an array (n, ...) or n rows. `attributes`: text of each file, by name."""
    if rows_per_shard is not None and rows_per_shard < 1:
        raise ValueError(f"rows_per_shard={rows_per_shard}: give 1 or more, or None")
    if not name or "/" in name:
        raise ValueError(f"name={name!r}: give what the files' names shall begin with; the folder is named before it")
    level = _gzip_level(compression)
    _import_h5py()
    folder = pathlib.Path(folder)
    former = sorted(folder.glob(f"{name}-?????-of-?????.h5"))
    if former and not overwrite:
        raise FileExistsError(f"{former[0]} exists: give overwrite=True to replace it, or another folder or name")
    folder.mkdir(parents=True, exist_ok=True)
    writer = _Writer(folder, name, rows_per_shard, level, attributes or {})
    ragged = declared_shapes(ragged)
    try:
        for batch in _told(batches):
            batch = {field: _as_rows(values) for field, values in batch.items()}
            columns = {field: _column(values, f"field {field!r}", writer.samples)
                       for field, values in batch.items()}
            if not writer.fields:
                ragged = {**_bytes_fields({field: values[0] for field, values in batch.items() if len(values)}), **ragged}
                writer.fields = _fields(columns, ragged, dtypes or {})
            writer.append(columns)
        if not writer.shards:
            raise ValueError("the data has no samples")
        return writer.commit(former)
    finally:
        writer.abandon()
