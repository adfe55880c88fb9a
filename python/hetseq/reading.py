"""What a task says of how its samples are read and made."""

from __future__ import annotations

from typing import Any

from .task import Option, Task, TaskError, overrides

__all__ = ["describe_reading", "makes_batches", "makes_samples", "reading_options", "reads_dataset"]

_WORKERS = {"data-workers": Option("auto", "N|auto: processes of each rank that make samples; auto: its cores but one, at most 8",
                                   changeable=True)}
_CACHE = {
    "cache-data": Option("auto", "write a dataset's samples once as shards (on), or read them each time (off); auto: on for fields of "
                         "unequal length and for streams", choices=("auto", "on", "off"), changeable=True)}


def reads_dataset(task: Task) -> bool:
    """Whether `--data` may name a split of a dataset in Python."""
    return overrides(task, "dataset") or bool(task._given_data)


def makes_samples(task: Task) -> bool:
    """Whether processes make samples, by a dataset or by `transform`."""
    return reads_dataset(task) or overrides(task, "transform")


def makes_batches(task: Task) -> bool:
    """Whether Python makes more of the samples than the fields that shards hold."""
    return makes_samples(task) or overrides(task, "collate")


def reading_options(task: Task) -> dict[str, Option]:
    """Options that such a task has besides its own."""
    return {**(_WORKERS if makes_samples(task) else {}), **(_CACHE if reads_dataset(task) else {})}


def describe_reading(task: Task, described: dict[str, Any], option: Any) -> dict[str, Any]:
    """Adds to what the trainer is told of the task. `option`: describes one."""
    own = [option(name, each) for name, each in reading_options(task).items()]
    if twice := {each["name"] for each in own} & {each["name"] for each in described["options"]}:
        raise TaskError(f"the task has an option named '{min(twice)}', which hetseq adds to tasks with a dataset: give it another name")
    if reads_dataset(task):
        described["defaults"].setdefault("data", "train")
    described.update(collates=makes_batches(task), makes_samples=makes_samples(task), reads_dataset=reads_dataset(task),
                     options=own + described["options"])
    return described
