"""Trained models of runs."""

from __future__ import annotations

import json
import os
import pathlib
from typing import Mapping, Union

import torch

from .configurations import read_options
from .draw_places import without_shells
from .keys import drawing_from
from .task import Config, Option, TaskError
from .trust import check_owners

_DTYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
           "I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8,
           "BOOL": torch.bool}


def read_tensors(path: Union[str, os.PathLike[str]]) -> dict[str, torch.Tensor]:
    """The tensors of a safetensors file by name. Raises ValueError for another file."""
    data = bytearray(pathlib.Path(path).read_bytes())
    length = int.from_bytes(data[:8], "little")
    if not 2 <= length <= len(data) - 8:
        raise ValueError(f"{path} is not a safetensors file")
    header = json.loads(data[8:8 + length].decode())
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        tensors[name] = torch.frombuffer(data[begin:end] or bytearray(1), dtype=torch.uint8)[:end - begin].view(
            _DTYPES[entry["dtype"]]).reshape(entry["shape"])
    return tensors


def _choices(settings: Mapping[str, str], options: Mapping[str, Option]) -> dict[str, object]:
    def number(name: str) -> Union[float, None]:
        return float(settings[name]) if name in settings else None

    names = [name.replace("_", "-") for name in options]
    return {"model_config": settings.get("model-config", ""), "init_model": "", "data": settings.get("data", ""),
            "seed": int(settings.get("seed", "1")), "dropout": number("dropout"),
            "attention_dropout": number("attention-dropout"),
            "options": {name: settings[name] for name in names if name in settings}}


def load(run: Union[str, os.PathLike[str]], task=None, *, trust: bool = False) -> torch.nn.Module:
    """The model of a run of a task in Python, on the CPU and in eval mode: the best one where the run has validated
    (best.safetensors), else the final one.

    run: the run's folder. task: its task; by default the one that the run's config.cfg names. Its file is run, so that
    it and the folder must belong to the user or root, unless `trust` is True.
    """
    from .run import load_task

    folder = pathlib.Path(run)
    settings = read_options(folder / "config.cfg")
    if task is None:
        if not settings.get("task-file"):
            raise TaskError(f"{folder} names no task in Python: give load the run's task")
        if not trust:
            check_owners(os.fspath(folder / "config.cfg"), settings["task-file"].rpartition(".py")[0] + ".py")
        task, _ = load_task(settings["task-file"])
    files = [folder / name for name in ("best.safetensors", "model.safetensors") if (folder / name).exists()]
    if not files:
        raise FileNotFoundError(f"{folder} has no model yet, neither best.safetensors nor model.safetensors")
    with drawing_from(int(settings.get("seed", "1"))):
        task.choices = Config(_choices(settings, task.options), task.options)
        model = task.model(task.choices)
    names = {name: without_shells(name) for name in model.state_dict()}
    read = read_tensors(files[0])
    stored = {name: read[plain] for name, plain in names.items() if plain in read}
    known = {id(tensor) for name, tensor in model.state_dict(keep_vars=True).items() if name in stored}
    lacking = [name for name, tensor in model.state_dict(keep_vars=True).items() if id(tensor) not in known]
    surplus = read.keys() - set(names.values())
    if lacking or surplus:
        raise TaskError(f"{files[0]} does not fit the task's model: " + (
            f"it lacks '{lacking[0]}'" if lacking else f"it has '{sorted(surplus)[0]}'"))
    model.load_state_dict(stored, strict=False)
    return model.eval()
