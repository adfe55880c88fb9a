"""A sample of a dataset as the tensors of a task's fields, checked."""

from __future__ import annotations

import os
import traceback
from typing import Any, Mapping, Sequence, Union

import torch

from .task import AnyField, Bytes, Field, Ragged, SampleError, TaskError

__all__ = ["as_fields", "failed"]

_HERE = os.path.dirname(os.path.abspath(__file__))
_WHOLE = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
_UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)  # which torch computes little with


def as_fields(fields: Mapping[str, AnyField], sample: Any, place: str) -> dict[str, torch.Tensor]:
    """By name, in the fields' types. A field with `is_target` may be missing; what is no field is left out. `place`: what
    an error calls the sample."""
    named = _named(list(fields), sample, place)
    tensors = {}
    for name, field in fields.items():
        if name in named:
            tensors[name] = _tensor(name, field, named[name], place)
        elif not field.is_target:
            raise TaskError(f"{place} has no '{name}', only {', '.join(map(repr, named)) or 'nothing'}: give each of the task's "
                            "fields under its name")
    return tensors


def failed(error: BaseException, place: str) -> TaskError:
    """What says that the sample at `place` cannot be made, with the traceback of the user's own lines."""
    if isinstance(error, TaskError):
        return error
    summary = traceback.TracebackException.from_exception(error)
    while summary.stack and os.path.dirname(os.path.abspath(summary.stack[0].filename)) == _HERE:
        del summary.stack[0]
    return SampleError(f"{place} cannot be made:\n" + "".join(summary.format(chain=error.__cause__ is not None)).rstrip())


def _named(names: Sequence[str], sample: Any, place: str) -> Mapping[str, Any]:
    if isinstance(sample, Mapping):
        return sample
    if isinstance(sample, tuple) or isinstance(sample, list) and len(names) > 1:
        if len(sample) != len(names):
            raise TaskError(f"{place} has {len(sample)} values, and the task {len(names)} fields ({', '.join(names)}): "
                            "give a value for each field in order, or a dict by name")
        return dict(zip(names, sample))
    if len(names) == 1:
        return {names[0]: sample}
    raise TaskError(f"{place} is a {type(sample).__name__}: give a dict of the fields {', '.join(names)}, or a tuple of "
                    "them in order")


def _tensor(name: str, field: AnyField, value: Any, place: str) -> torch.Tensor:
    where = f"{place}, field '{name}'"
    if isinstance(field, Bytes):
        return _bytes(value, where)
    tensor = _raw(value, where)
    _check_shape(field, tensor, where)
    tensor = _converted(field.dtype, tensor, where)
    _check_values(field, tensor, where)
    return tensor.contiguous()


def _bytes(value: Any, where: str) -> torch.Tensor:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return torch.frombuffer(bytearray(value), dtype=torch.uint8) if len(value) > 0 else torch.empty(0, dtype=torch.uint8)
    tensor = _raw(value, where)
    if tensor.dtype != torch.uint8 or tensor.dim() != 1:
        raise TaskError(f"{where}, is {tensor.dtype} of the shape {tuple(tensor.shape)}, and the field holds bytes: give bytes, or "
                        "a tensor (bytes) uint8")
    return tensor


def _raw(value: Any, where: str) -> torch.Tensor:
    if isinstance(value, torch.Tensor):
        return value.detach().cpu()
    try:
        if hasattr(value, "__array__") or hasattr(value, "__array_interface__"):  # of NumPy, and images of Pillow
            import numpy

            return torch.from_numpy(numpy.array(value))  # a copy: the dataset's own may be read-only
        tensor = torch.tensor(value)
        return torch.tensor(value, dtype=torch.float64) if tensor.is_floating_point() else tensor
    except (TypeError, ValueError, RuntimeError) as error:
        raise TaskError(f"{where}, is a {type(value).__name__}, which is no tensor ({str(error).splitlines()[0]}): give "
                        "numbers, a tensor or an array") from None


def _check_shape(field: Union[Field, Ragged], tensor: torch.Tensor, where: str) -> None:
    expected = tuple(field.shape)
    if len(expected) != tensor.dim() or any(length not in (None, found) for length, found in zip(expected, tensor.shape)):
        hint = "; an image of Pillow is (height, width, channels), and pil_to_tensor of torchvision turns it" if tensor.dim() == 3 else ""
        raise TaskError(f"{where}, has the shape {tuple(tensor.shape)}, and the task's field {expected}: make all samples "
                        f"of that shape, or correct the field{hint}")


def _converted(dtype: torch.dtype, tensor: torch.Tensor, where: str) -> torch.Tensor:
    if tensor.dtype == dtype:
        return tensor
    if tensor.numel() == 0:
        return tensor.to(dtype)
    if tensor.dtype in _UNSIGNED:
        signed = tensor.to(torch.int64)
        if tensor.dtype == torch.uint64 and bool((signed < 0).any()):
            raise TaskError(f"{where}, has values above 2^63 - 1: give whole numbers of up to 63 bits")
        return _converted(dtype, signed, where)
    is_whole = tensor.dtype in _WHOLE
    fits = (is_whole and (dtype in _WHOLE or dtype == torch.bool) or tensor.is_floating_point() and dtype.is_floating_point
            or tensor.dtype == torch.bool and dtype == torch.uint8)
    if not fits:
        raise TaskError(f"{where}, is {tensor.dtype}, and the task's field {dtype}: convert it in the dataset, or correct "
                        "the field's type")
    converted = tensor.to(dtype)
    if is_whole and not torch.equal(converted.to(torch.int64), tensor.to(torch.int64)):
        raise TaskError(f"{where}, has values that do not fit {dtype} ({int(tensor.min())} to {int(tensor.max())}): choose "
                        "a larger type for the field")
    return converted


def _check_values(field: Union[Field, Ragged], tensor: torch.Tensor, where: str) -> None:
    if tensor.numel() == 0:
        return
    if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
        raise TaskError(f"{where}, holds a value that is not finite: clean the data")
    meaning = f" ({field.meaning})" if field.meaning else ""
    for bound, found, is_outside in ((field.minimum, tensor.min(), lambda a, b: a < b),
                                     (field.maximum, tensor.max(), lambda a, b: a > b)):
        if bound is not None and is_outside(float(found), bound):
            raise TaskError(f"{where}, holds {found.item()}, and its values are from {field.minimum} to {field.maximum}"
                            f"{meaning}: correct the data, or the field's bounds")
