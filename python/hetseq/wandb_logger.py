"""Runs of hetseq in Weights & Biases."""

from __future__ import annotations

import pathlib
import uuid
from typing import Any, Optional

from .task import TaskError

__all__ = ["WandbLogger"]

_ID_FILE = "wandb-id"  # in the run's folder
_MEANS = ("loss", "grad_norm", "samples_per_second", "units_per_second", "step_ms")


def _typed(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


class _Means:
    """Means of figures over some updates."""

    def __init__(self) -> None:
        self._sums: dict[str, float] = {}
        self._updates = 0

    def add(self, figures: dict[str, Optional[float]]) -> None:
        self._updates += 1
        for name, value in figures.items():
            self._sums[name] = self._sums.get(name, 0.0) + (float("nan") if value is None else value)

    def take(self) -> dict[str, float]:
        means = {name: value / self._updates for name, value in self._sums.items()}
        self._sums, self._updates = {}, 0
        return means


class WandbLogger:
    """A callback that logs a run to Weights & Biases: `hetseq.train(task, callbacks=[hetseq.WandbLogger(project="p")])`.

    every: updates between two points, whose losses and speeds are means over them; None: the run's --log-interval.
    init_arguments: of wandb.init, such as project, name, tags, mode="offline". By default the name is that of the run's
    folder, and the configuration its options.

    A run that is continued goes on as the same run of W&B: its id is kept in the run's folder (wandb-id). Points are
    numbered by updates.
    """

    def __init__(self, project: Optional[str] = None, *, every: Optional[int] = None, **init_arguments: Any) -> None:
        try:
            import wandb
        except ImportError as error:
            raise TaskError(f"WandbLogger needs wandb, which cannot be imported ({error}): pip install wandb") from error
        if every is not None and every < 1:
            raise TaskError(f"every is {every}: give a number of updates from 1 up")
        self._wandb = wandb
        self._arguments = dict(init_arguments, project=project)
        self._every = every
        self._interval = 1
        self._means = _Means()
        self.run: Any = None  # of W&B, once the training has begun

    def on_start(self, info: dict[str, Any]) -> None:
        options = info["options"]
        self._interval = self._every or int(options.get("log-interval", 100))
        self._last = info["updates"]
        arguments = {"config": {name: _typed(text) for name, text in options.items()}, **self._arguments}
        if info["run"] is not None:
            folder = pathlib.Path(info["run"])
            arguments = {"name": folder.name, "id": self._id(folder, info["update"] > 0), "resume": "allow", **arguments}
        self.run = self._wandb.init(**arguments)

    @staticmethod
    def _id(folder: pathlib.Path, is_continued: bool) -> str:
        """The run's id in W&B; a new one for a run that begins."""
        file = folder / _ID_FILE
        if is_continued and file.exists():
            return file.read_text().strip()
        made = uuid.uuid4().hex[:12]
        file.write_text(made + "\n")
        return made

    def on_update(self, info: dict[str, Any]) -> None:
        losses = info["losses"] if len(info["losses"]) > 1 else {}
        self._means.add({f"train/{name}": info[name] for name in _MEANS} |
                        {f"train/{name}": value for name, value in losses.items()})
        if info["update"] % self._interval == 0 or info["update"] == self._last:
            self.run.log({**self._means.take(), "train/lr": info["lr"], "epoch": info["epoch"]}, step=info["update"])

    def on_validation(self, info: dict[str, Any]) -> None:
        values = {f"valid/{name}": value for name, value in info.items()
                  if isinstance(value, (int, float)) and name not in ("update", "epoch", "samples", "best")}
        self.run.log({**values, "epoch": info["epoch"]}, step=info["update"])

    def on_end(self, info: dict[str, Any]) -> None:
        best = info.get("valid", {}).get("best", {})
        self.run.summary.update({"status": info["status"], **{f"best/{name}": value for name, value in best.items()}})
        self.run.finish()
