"""What a task says of how its samples are read and made."""

from __future__ import annotations

import inspect
from typing import Any

from .task import Option, Task, TaskError, overrides

__all__ = ["describe_reading", "makes_batches", "makes_samples", "reading_options", "reads_dataset"]

_OPTIONS = {
    "data-workers": Option("auto", "N|auto: processes of each rank that make samples; auto: its cores but one, at most 8",
                           changeable=True),
    "cache-data": Option("auto", "write a dataset's samples once as shards (on), or read them each time (off); auto: on for fields of "
                         "unequal length and for streams", choices=("auto", "on", "off"), changeable=True),
    "shuffle-buffer": Option(10000, "samples of a stream that are shuffled together, an epoch, with --cache-data off", changeable=True)}


def reads_dataset(task: Task) -> bool:
    """Whether `--data` may name a split of a dataset in Python."""
    return overrides(task, "dataset") or bool(task._given_data)


def makes_samples(task: Task) -> bool:
    """Whether processes make samples, by a dataset or by `transform`."""
    return reads_dataset(task) or overrides(task, "transform")


def makes_batches(task: Task) -> bool:
    """Whether Python makes more of the samples than the fields that shards hold."""
    return makes_samples(task) or overrides(task, "collate")


def reading_options() -> dict[str, Option]:
    """Options that each task has besides its own: a configuration may come from a script that gave it a dataset."""
    return dict(_OPTIONS)


def _check_signatures(task: Task) -> None:
    """A task may have a method of such a name for something else."""
    for method, expected in (("dataset", ("config", "split")), ("transform", ("sample", "training"))):
        if not overrides(task, method):
            continue
        try:
            inspect.signature(getattr(task, method)).bind(*expected)
        except TypeError:
            raise TaskError(f"the task's {method} does not take {', '.join(expected)}, which hetseq calls it with: let it take them, "
                            "or give a helper of your own another name") from None


def describe_reading(task: Task, described: dict[str, Any], option: Any) -> dict[str, Any]:
    """Adds to what the trainer is told of the task. `option`: describes one."""
    _check_signatures(task)
    own = [option(name, each) for name, each in reading_options().items()]
    if twice := {each["name"] for each in own} & {each["name"] for each in described["options"]}:
        raise TaskError(f"the task has an option named '{min(twice)}', which hetseq gives every task in Python: choose another")
    if reads_dataset(task):
        described["defaults"].setdefault("data", "train")
    described.update(collates=makes_batches(task), makes_samples=makes_samples(task),
                     transforms=overrides(task, "transform"), reads_dataset=reads_dataset(task),
                     options=own + described["options"])
    return described
