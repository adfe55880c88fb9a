"""Rows of unequal shapes on their way into shards: which dimensions are unequal, and whether a row fits."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Optional

if TYPE_CHECKING:
    import numpy as np

__all__ = ["RowShape", "check_row_shape", "common_shape", "declared_shapes", "found_shape", "is_bytes", "row_values",
           "unequal_rows"]

RowShape = tuple[Optional[int], ...]
"""Of the rows of a ragged field, None for each dimension that is unequal."""


def is_bytes(row: Any) -> bool:
    return isinstance(row, (bytes, bytearray, memoryview))


def declared_shapes(ragged: Iterable[str] | Mapping[str, Sequence[int | None]]) -> dict[str, Optional[RowShape]]:
    """The shapes of ragged fields by name; None where the rows are to tell. Raises ValueError."""
    if not isinstance(ragged, Mapping):
        return dict.fromkeys([ragged] if isinstance(ragged, str) else ragged)
    shapes = {}
    for name, shape in ragged.items():
        if shape is not None and (not isinstance(shape, (tuple, list)) or None not in shape or not all(
                length is None or (isinstance(length, int) and length > 0) for length in shape)):
            raise ValueError(f"ragged says {shape!r} for {name!r}: give a tuple of whole numbers from 1 up, and None for each "
                             "dimension that is unequal, such as (None, 80)")
        shapes[name] = None if shape is None else tuple(shape)
    return shapes


def common_shape(shapes: Iterable[Sequence[int]]) -> RowShape:
    """Of rows of one number of dimensions, None where they differ."""
    return tuple(lengths[0] if len(set(lengths)) == 1 else None for lengths in zip(*shapes))


def _shape(row: Any) -> tuple[int, ...]:
    """Without a copy where the row is an array; of a list, as NumPy would take it."""
    if is_bytes(row):
        return (len(row),)
    if hasattr(row, "shape"):
        return tuple(row.shape)
    if not hasattr(row, "__len__") or isinstance(row, str):
        return ()
    inner = {_shape(part) for part in row[:1]} if len(row) else set()
    return (len(row), *(inner.pop() if inner else ()))


def unequal_rows(values: Any) -> Optional[RowShape]:
    """The shape of the rows of a list, where it is ragged."""
    is_array = hasattr(values, "shape") and hasattr(values, "dtype") and str(values.dtype) != "object"
    if is_array or not isinstance(values, Sequence) or not values:
        return None
    if is_bytes(values[0]):
        return (None,)
    shapes = {_shape(row) for row in values}
    if len({len(shape) for shape in shapes}) > 1:
        return None  # the error comes with the row
    return common_shape(shapes) if len(shapes) > 1 else None


def found_shape(name: str, rows: Sequence[np.ndarray], is_ragged: bool) -> Optional[RowShape]:
    """The shape of the rows of a field that the first samples show to be ragged, or `is_ragged` does. None: it is not."""
    shapes = {row.shape for row in rows}
    if len({len(shape) for shape in shapes}) > 1 or shapes == {()}:
        if is_ragged:
            counts = sorted({len(shape) for shape in shapes})
            raise ValueError(f"field {name!r} is ragged, and its rows have {' or '.join(map(str, counts))} dimensions: give "
                             "rows of one number of dimensions, one at least")
        return None
    shape = common_shape(shapes)
    if None not in shape and is_ragged:
        if len(shape) > 1:
            raise ValueError(f"field {name!r} is ragged, and its first rows have one shape, {shape}: say which dimensions are "
                             f"unequal, ragged={{{name!r}: {(None, *shape[1:])}}}")
        return (None,)
    return shape if None in shape else None


def check_row_shape(name: str, sample: int, shape: tuple[int, ...], expected: RowShape) -> None:
    """Raises ValueError where a row does not fit."""
    if len(shape) != len(expected):
        raise ValueError(f"field {name!r}, sample {sample}, has {len(shape)} dimensions ({shape}): a row has {len(expected)}, "
                         f"{expected}")
    if any(length is not None and length != found for found, length in zip(shape, expected)):
        wider = tuple(length if length == found else None for found, length in zip(shape, expected))
        raise ValueError(f"field {name!r}, sample {sample}, has the shape {shape}, and a row has {expected}: mend the row, or "
                         f"give ragged={{{name!r}: {wider}}}")


def row_values(rows: Sequence[np.ndarray]) -> np.ndarray:
    """The values of all rows end to end, each in row-major order."""
    import numpy

    return numpy.concatenate([row.reshape(-1) for row in rows])
