"""Processes that make samples: they read them from a dataset, and transform them."""

from __future__ import annotations

import collections
import concurrent.futures
import itertools
import multiprocessing
import os
import signal
import threading
import time
import traceback
import warnings
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Callable, Iterable, Iterator, Optional, Sequence

import torch

from .task import TaskError

__all__ = ["Readers", "default_count"]

_MOST_BY_DEFAULT = 8  # processes of a rank
_WATCH_S = 0.5        # how often a process looks whether its rank still lives
_AHEAD = 4            # pieces that wait for each process, where pieces come one after the other

_make: Optional[Callable[..., Any]] = None  # in such a process: what it calls


def default_count() -> int:
    """A process for each core of this rank but the one that trains."""
    cores = len(os.sched_getaffinity(0))
    if cores == os.cpu_count():  # bound to no cores: the ranks of the host share them
        cores //= max(int(os.environ.get("OMPI_COMM_WORLD_LOCAL_SIZE", "1")), 1)
    return max(1, min(cores - 1, _MOST_BY_DEFAULT))


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_WATCH_S)
    os._exit(0)


def _begin(make: Callable[..., Any], parent: int) -> None:
    """In the new process. It leaves the job's signals to the rank, whose handlers it has inherited."""
    global _make
    for number in (signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    torch.set_num_threads(1)
    _make = make


def _made(arguments: tuple[Any, ...]) -> tuple[Any, str]:
    """What `_make` gives, or why it gives nothing. An exception may not be one that can be sent."""
    try:
        return _make(*arguments), ""
    except TaskError as error:
        return None, str(error)
    except Exception:
        return None, traceback.format_exc().rstrip()


class Readers:
    """`count` processes that call `make(*arguments)`, copies of this one as it is now."""

    def __init__(self, make: Callable[..., Any], count: int):
        self.count = count
        self._pool = concurrent.futures.ProcessPoolExecutor(
            count, multiprocessing.get_context("fork"), _begin, (make, os.getpid()))
        with warnings.catch_warnings():  # newer Pythons warn of fork beside threads; these processes run none of theirs
            warnings.simplefilter("ignore", DeprecationWarning)
            started = [self._pool.submit(os.getpid) for _ in range(count)]
        for each in started:
            self.result(each, checked=False)

    def submit(self, *arguments: Any) -> concurrent.futures.Future:
        try:
            return self._pool.submit(_made, arguments)
        except BrokenProcessPool as error:
            raise _died(self.count) from error

    def result(self, future: concurrent.futures.Future, checked: bool = True) -> Any:
        """Raises TaskError with the traceback of an exception there, or where the process died."""
        try:
            made = future.result()
        except BrokenProcessPool as error:
            raise _died(self.count) from error
        if not checked:
            return made
        value, failure = made
        if failure:
            raise TaskError(failure)
        return value

    def results(self, all_arguments: Iterable[Sequence[Any]]) -> Iterator[Any]:
        """What each gives, in order; some are made ahead."""
        remaining = iter(all_arguments)
        waiting = collections.deque(self.submit(*each) for each in itertools.islice(remaining, _AHEAD * self.count))
        while waiting:
            value = self.result(waiting.popleft())
            waiting.extend(self.submit(*each) for each in itertools.islice(remaining, 1))
            yield value

    def end(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)


def _died(count: int) -> TaskError:
    return TaskError(f"one of the {count} processes that read the data died, killed by a signal or for want of memory: "
                     "give fewer, --data-workers 1, or look at what the dataset and transform load")
