"""Copies of this process, that end with it, and what a process says where there is no log."""

from __future__ import annotations

import contextlib
import fcntl
import gc
import multiprocessing
import os
import signal
import stat
import sys
import threading
import time
import warnings
from multiprocessing.process import BaseProcess
from typing import Any, Callable

import torch

__all__ = ["say", "start_copy"]

_WATCH_S = 0.5  # how often a copy looks whether its rank still lives


def say(text: str) -> None:
    """On rank 0 alone, by the rank or by copies of it."""
    if torch.ops.hetseq.launched_rank() <= 0:
        print(f"hetseq: {text}", file=sys.stderr, flush=True)


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_WATCH_S)
    os._exit(0)


def _reopen_files() -> None:
    """A file that was open before has one position for all copies, and one would read where another has gone. So each opens
    those that are only read once more, at the same place."""
    folder = "/proc/self/fd"
    for number in map(int, os.listdir(folder) if os.path.isdir(folder) else ()):
        with contextlib.suppress(OSError):  # it was `folder` itself, or may not be opened
            if number <= 2 or not stat.S_ISREG(os.fstat(number).st_mode):
                continue
            if fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY:
                continue
            own = os.open(f"{folder}/{number}", os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.lseek(own, os.lseek(number, 0, os.SEEK_CUR), os.SEEK_SET)
                os.dup2(own, number, inheritable=os.get_inheritable(number))
            finally:
                os.close(own)


def _run(work: Callable[..., None], arguments: tuple[Any, ...], parent: int) -> None:
    """It leaves the job's signals to the rank, whose handlers it has inherited: where they come to all processes, the rank
    still needs it for the update that it is in."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU):
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    _reopen_files()
    torch.set_num_threads(1)
    multiprocessing.current_process()._config["daemon"] = False  # it may have processes of its own, as a DataLoader has
    gc.freeze()  # what the rank has loaded is looked through no more
    work(*arguments)


def start_copy(work: Callable[..., None], *arguments: Any) -> BaseProcess:
    """A copy of this process as it is now, that calls `work(*arguments)`."""
    process = multiprocessing.get_context("fork").Process(target=_run, args=(work, arguments, os.getpid()), daemon=True)
    with warnings.catch_warnings():  # newer Pythons warn of fork beside threads; these processes run none of theirs
        warnings.simplefilter("ignore", DeprecationWarning)
        process.start()
    return process
