"""Commands of hetseq with a task in Python: from a script, and from the command line."""

from __future__ import annotations

import atexit
import importlib.util
import os
import sys
import traceback
from typing import Any, Optional, Sequence

import torch

from . import bridge
from .task import Task, TaskError, option_text
from .trust import check_owners
from .whole import holds_part, read_whole

_WITH_TASK = ("train", "evaluate", "check", "bench")  # commands that have the option --task
_loading: list[str] = []  # the task files that run now, to find their tasks


class Error(RuntimeError):
    """A command of hetseq failed, on all ranks alike. `code` is its exit code (docs/exit-codes.md)."""

    def __init__(self, message: str, code: int):
        super().__init__(message)
        self.code = code


class Stopped(SystemExit):
    """A run stopped before its end, as it was asked to, with a checkpoint that continues it. A script that does not
    catch it ends with the exit code that tells a scheduler so."""


def rank() -> int:
    """This process's rank, as the launcher numbered it; 0 without one."""
    return torch.ops.hetseq.launched_rank()


def _words_of(options: dict[str, Any]) -> list[str]:
    words = []
    spelled: dict[str, str] = {}
    for name, value in options.items():
        word = "--" + name.replace("_", "-")
        if spelled.setdefault(word, name) != name:
            raise Error(f"{spelled[word]} and {name} are the same option: give one of them", 78)
        if type(value).__module__ == "numpy" and type(value).__name__ in ("bool", "bool_"):
            value = bool(value)
        if value is True:
            words.append(word)
        elif value is not None and value is not False:
            words += [word, option_text(value)]
    return words


def _spec_of(task: Task) -> str:
    """FILE.py:CLASS of the task, where it is a class of a file."""
    module = sys.modules.get(type(task).__module__)
    path, name = getattr(module, "__file__", None), type(task).__qualname__
    return f"{os.path.abspath(path)}:{name}" if path and name.isidentifier() else ""


_uncaught = []  # exceptions that end the script


def _end_mpi_with_the_script() -> None:
    """MPI ends when the script does. An exception that nobody catches may be of this rank alone: then the others would
    wait for it, and the job is ended."""
    if sys.excepthook is not _remember:
        _remember.before = sys.excepthook
        sys.excepthook = _remember
    atexit.unregister(_end_mpi)
    atexit.register(_end_mpi)


def _remember(kind: type, error: BaseException, trace: Any) -> None:
    _uncaught.append(error)
    if not isinstance(error, Error):
        _remember.before(kind, error, trace)
    elif rank() == 0:  # the trainer has told it already, once for all ranks and with the traceback of the task's Python
        place = "".join(traceback.format_tb(trace))
        print(f"Traceback (most recent call last):\n{place}hetseq.Error: as told above", file=sys.stderr)


def _end_mpi() -> None:
    if _uncaught:
        sys.stdout.flush()
        sys.stderr.flush()
        torch.ops.hetseq.abort_mpi(getattr(_uncaught[-1], "code", 1))
    torch.ops.hetseq.end_mpi()


def train(task: Task, config: Optional[str] = None, *, callbacks: Sequence[Any] = (), **options: Any) -> torch.nn.Module:
    """Trains the task's module on all ranks of the job and returns it, trained, in eval mode.

    config: a configuration file. options: those of `hetseq train`, with `_` for `-`: data="shards/*.h5", lr=3e-4,
    max_sentences={"v100": 64, "p100": 32}, overwrite=True. data and valid_data may be datasets in place of names (see
    Task.dataset).
    callbacks: objects that hear how the run goes, beside
    those of the task (Task.callbacks).

    Every rank of the job calls it, with the same task. Raises Error where all ranks met the same error, with the
    exception of the task's Python as its cause where this rank had one. What a rank meets alone (its device, its memory,
    an exception in the middle of an update) ends the whole job with its message. Raises Stopped where the run was asked
    to stop. MPI runs until the script ends; a script may train several times.
    """
    if not isinstance(task, Task):
        raise TaskError(f"train was given a {type(task).__name__}, not a hetseq.Task: see hetseq.task")
    if _loading:
        raise TaskError(f"{_loading[-1]} trains while another command reads its task: put the call of hetseq.train under "
                        "if __name__ == \"__main__\":")
    given, options = _given_datasets(options)
    task._given_data = given
    try:
        binding = bridge.Binding(task, _spec_of(task), callbacks)
        _end_mpi_with_the_script()
        words = ["train", *([config] if config else []), "--task", "python", *_words_of(options)]
        code, message = bridge.run(binding, words, in_script=True)
    finally:
        task._given_data = {}  # those of this training
    if binding.failure is not None or code not in (0, 75):
        raise Error(message or f"hetseq ended with code {code}", code) from binding.failure
    if code == 75:
        raise Stopped(code)
    if binding.module is None:
        raise Error("no model was made", 70)
    if holds_part(binding.module):
        read_whole(binding.module, options.get("save_dir"))
    _detach(binding.module)
    return binding.module.eval()


_SPLITS = {"data": "train", "valid_data": "valid"}  # as options name what a script gives


def _is_dataset(value: Any) -> bool:
    """And not the names of files."""
    names = value if isinstance(value, (list, tuple)) and value else [value]
    return value is not None and not all(isinstance(name, (str, os.PathLike)) for name in names)


def _given_datasets(options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The datasets that `options` hold, by split, and options that name them."""
    given = {option.replace("-", "_"): value for option, value in options.items() if _is_dataset(value)}
    given = {option: value for option, value in given.items() if option in _SPLITS}
    names = {option: _SPLITS[option] for option in given}
    return {_SPLITS[option]: value for option, value in given.items()}, {**options, **names}


def _detach(module: torch.nn.Module) -> None:
    """Gives each parameter memory of its own again: in training they are views of one tensor."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.data = parameter.data.clone()
            parameter.grad = None


def load_task(spec: str) -> tuple[Task, str]:
    """The task that FILE.py:NAME names, a class or an object, and its spec with the file's whole path. Without a name,
    the file's only task."""
    path, name = torch.ops.hetseq.divide_task(spec)
    if not path:
        raise TaskError(f"'{spec}' does not name a task: give FILE.py:CLASS")
    path = os.path.abspath(path)
    if os.path.isdir(path):
        raise TaskError(f"{path} is a folder: name a file of Python")
    if not os.path.exists(path):
        raise TaskError(f"there is no file {path}")
    sys.path.insert(0, os.path.dirname(path))
    description = importlib.util.spec_from_file_location(os.path.splitext(os.path.basename(path))[0], path)
    module = importlib.util.module_from_spec(description)
    sys.modules[description.name] = module
    _loading.append(path)
    try:
        description.loader.exec_module(module)
    finally:
        _loading.pop()
    tasks = {key: value for key, value in vars(module).items() if isinstance(value, Task) or
             isinstance(value, type) and issubclass(value, Task) and value.__module__ == module.__name__}
    if not name and len(tasks) != 1:
        raise TaskError(f"{path} holds {len(tasks)} tasks ({', '.join(tasks) or 'none'}): name one, {path}:CLASS")
    name = name or next(iter(tasks))
    named = getattr(module, name, None)
    if isinstance(named, Task) or isinstance(named, type) and issubclass(named, Task) and named is not Task:
        tasks[name] = named  # perhaps imported from another file
    if name not in tasks:
        raise TaskError(f"{path} holds no task {name}" + (f", only {', '.join(tasks)}" if tasks else ""))
    task = tasks[name]
    return (task() if isinstance(task, type) else task), f"{path}:{name}"


def _find_spec(words: list[str], trusted: bool) -> tuple[str, str, list[str]]:
    """The task that the words of a command line name, the configuration that names it (empty: the words do), and the
    other words."""
    specs, configuration, others, lacks_value = torch.ops.hetseq.find_tasks(words)
    if lacks_value:
        raise TaskError("--task-file has no value: give FILE.py:CLASS")
    if len(specs) > 1:
        raise TaskError(f"the command line names {len(specs)} tasks in Python ({', '.join(specs)}): name one")
    spec = specs[0] if specs else ""
    path, _ = torch.ops.hetseq.divide_task(spec)
    if path and configuration and not trusted:
        check_owners(configuration, path)
    return spec, configuration, others


def main(words: Optional[list[str]] = None) -> int:
    """The program `hetseq` with a task in Python; returns its exit code. `--trust` is for this program alone: no
    configuration can hold it."""
    words = list(sys.argv[1:] if words is None else words)
    trusted = "--trust" in words
    if words[:1] == ["new"]:  # the file that it names is not there yet
        return bridge.run(None, words, in_script=False)[0]
    spec, configuration, words = _find_spec([word for word in words if word != "--trust"], trusted)
    binding = None
    if spec:
        try:
            task, spec = load_task(spec)
        except TaskError as error:
            raise TaskError(f"{error} (the task-file of {configuration}; --task-file FILE.py:CLASS names another)"
                            if configuration else str(error)) from None
        binding = bridge.Binding(task, spec)
        if words[0] in _WITH_TASK:
            words[1:1] = ["--task", "python"]
    code, _ = bridge.run(binding, words, in_script=False)
    return code
