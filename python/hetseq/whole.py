"""A module before and after a pipeline, whose stages hold a part of its parameters each."""

from __future__ import annotations

import os
import pathlib
import tempfile
import warnings
from typing import Union

import torch

from .chain_sample import given_up
from .draw_places import without_shells

__all__ = ["KeptValues", "holds_part", "read_whole", "room_for_self_test"]

_SELF_TEST_BYTES = 40  # a parameter: values in fp64, and the gradients of several sums


def holds_part(module: torch.nn.Module) -> bool:
    """Whether the trainer has given up some of its parameters."""
    return any(given_up(parameter) for parameter in module.parameters())


def room_for_self_test(module: torch.nn.Module) -> str:
    """Why there is none; empty where there is."""
    needed = _SELF_TEST_BYTES * sum(parameter.numel() for parameter in module.parameters()) / 2**20
    available = torch.ops.hetseq.available_memory_mb()
    return "" if needed <= available / 2 else f"it would take some {needed:.0f} MiB, and {available} are free"


class KeptValues:
    """Parameters and buffers of a module that its owner gives again, in a file without a name while stages hold parts."""

    def __init__(self, module: torch.nn.Module) -> None:
        self._file = tempfile.TemporaryFile()
        torch.save([tensor.data for tensor in _tensors(module)], self._file)

    def restore(self, module: torch.nn.Module) -> None:
        """Parts and moved tensors are what they were, on the CPU."""
        self._file.seek(0)
        values = torch.load(self._file, map_location="cpu", weights_only=True)
        for tensor, value in zip(_tensors(module), values):
            tensor.data = value


def _tensors(module: torch.nn.Module) -> list[torch.Tensor]:
    return [*module.parameters(), *module.buffers()]


def read_whole(module: torch.nn.Module, save_dir: Union[str, os.PathLike[str], None]) -> None:
    """The trained parameters of all stages, into the module of one."""
    from .models import read_tensors

    path = pathlib.Path(save_dir or "", "model.safetensors")
    if not save_dir or not path.exists():
        warnings.warn("the module holds the parameters of this rank's stage alone, and zeros in place of the others "
                      f"({f'there is no {path}' if save_dir else 'the run had no save_dir'}): hetseq.load reads a run's "
                      "whole model", stacklevel=3)
        return
    read = read_tensors(path)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if without_shells(name) in read:
                parameter.data = read[without_shells(name)].to(parameter.dtype)
