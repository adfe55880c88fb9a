"""Processes that make samples: they read them from a dataset, and transform them."""

from __future__ import annotations

import collections
import concurrent.futures
import itertools
import math
import os
import queue
import sys
import threading
import time
import traceback
from typing import Any, Callable, Iterable, Iterator, Optional, Sequence

import torch

from .channels import DEPTH, Channel, Message, make_pair
from .processes import start_copy
from .task import SampleError, TaskError

__all__ = ["Readers", "default_count"]

_MOST_BY_DEFAULT = 8  # processes of a rank
_AHEAD = 4            # pieces that wait for each process, where pieces come one after the other
_LONG_S = 30          # a wait that is told
_END_S = 1            # for a process that is killed
_LOOK_S = 1           # between two looks at what is waited for

_WHY_PROCESSES = ("Their processes are copies of this one: a dataset that started threads, or holds locks, before it was copied "
                  "waits for ever (start them in __getitem__)")
_WHY_STREAM = "The stream has given none in this time"


def default_count() -> int:
    """A process for each core of this rank but the one that trains."""
    cores = len(os.sched_getaffinity(0))
    if cores == os.cpu_count():  # bound to no cores: the ranks of the host share them
        cores //= max(int(os.environ.get("OMPI_COMM_WORLD_LOCAL_SIZE", "1")), 1)
    return max(1, min(cores - 1, _MOST_BY_DEFAULT))


# In such a process.

def _made(make: Callable[..., Any], arguments: Sequence[Any]) -> tuple[Any, str]:
    """What `make` gives, or why it gives nothing. An exception may not be one that can be sent."""
    try:
        return make(*arguments), ""
    except TaskError as error:
        return None, str(error)
    except BaseException:  # one that ends it, too, such as sys.exit
        return None, traceback.format_exc().rstrip()


def _serve(make: Callable[..., Any], rank: Channel) -> None:
    try:
        while True:
            rank.send(rank.message(_made(make, rank.receive())))
    except (EOFError, OSError):  # the rank is gone
        os._exit(0)


class _Process:
    """One of them, and a thread of the rank that gives it work, some of it ahead. Nobody waits for either at the end: a
    process that was killed, or one that waits for ever, holds nothing up."""

    def __init__(self, make: Callable[..., Any], work: queue.SimpleQueue):
        self._channel, there = make_pair()
        self._process = start_copy(_serve, make, there)
        there.close()  # the process alone holds that end: when it dies, this one sees its end
        self._work = work
        self._given: collections.deque[concurrent.futures.Future] = collections.deque()  # what it makes now, in order
        self._next: Optional[tuple[Message, concurrent.futures.Future]] = None  # taken from the work, and not sent yet
        try:
            threading.Thread(target=self._give_work, daemon=True).start()
        except BaseException:
            self.kill()
            raise

    def _give_work(self) -> None:
        try:
            while self._give_ahead():
                self._take_result()
        except (EOFError, OSError):
            self._process.join(1)
            self._refuse_work()

    def _take_result(self) -> None:
        try:
            result = self._channel.receive()
        except (EOFError, OSError):
            raise
        except Exception as error:  # memory that lacks, for one
            self._given.popleft().set_exception(error)
        else:
            self._given.popleft().set_result(result)

    def _give_ahead(self) -> bool:
        """Waits for work where it has none. False at the end. A process that sends a large result does not receive."""
        while len(self._given) < DEPTH:
            if self._next is None:
                try:
                    item = self._work.get(block=not self._given)
                except queue.Empty:
                    break
                if item is None:
                    return False
                self._take(*item)
            elif self._given and self._next[0].waits:
                break
            else:
                self._give()
        return True

    def _take(self, arguments: Sequence[Any], future: concurrent.futures.Future) -> None:
        try:
            self._next = self._channel.message(arguments), future
        except Exception as error:  # what cannot be sent
            future.set_exception(error)

    def _give(self) -> None:
        message, future = self._next
        self._given.append(future)
        self._next = None
        self._channel.send(message)

    def _refuse_work(self) -> None:
        """The run ends with the first of these errors. Where no process is left, nobody else would answer."""
        death = _Died(self._process.exitcode)
        for future in [*self._given, *(() if self._next is None else self._next[1:])]:
            future.set_exception(death)
        while (item := self._work.get()) is not None:
            item[1].set_exception(death)

    def kill(self) -> None:
        self._process.kill()
        self._process.join(_END_S)


class _Died(Exception):
    def __init__(self, code: Optional[int]):
        super().__init__(f"ended by signal {-code}" if code is not None and code < 0 else f"ended with code {code}")


class Readers:
    """`count` processes that call `make(*arguments)`, copies of this one as it is now. `title`: of what they read, for
    messages. `position`: how far what they wait for has come; None: they wait for nobody."""

    def __init__(self, make: Callable[..., Any], count: int, title: str, position: Optional[Callable[[], int]] = None):
        self.count, self._title, self._position = count, title, position
        self._work: queue.SimpleQueue = queue.SimpleQueue()
        self._processes: list[_Process] = []
        try:
            for _ in range(count):
                self._processes.append(_Process(make, self._work))
        except BaseException:  # those that were started would wait for this process, and it for them
            self.end()
            raise

    def submit(self, *arguments: Any) -> concurrent.futures.Future:
        future: concurrent.futures.Future = concurrent.futures.Future()
        self._work.put((arguments, future))
        return future

    def result(self, future: concurrent.futures.Future) -> Any:
        """Raises SampleError with the traceback of an exception there, or where the process died."""
        try:
            value, failure = self._waited(future)
        except _Died as death:
            fewer = ": it may have lacked memory (fewer processes need less, --data-workers 1)" if self.count > 1 else ""
            raise SampleError(f"a process that makes samples of {self._title} died, {death}{fewer}; look at what the dataset and "
                            "transform load and call") from None
        if failure:
            raise SampleError(failure)
        torch.ops.hetseq.progress()
        return value

    def _waited(self, future: concurrent.futures.Future) -> tuple[Any, str]:
        told, before = time.monotonic(), None
        while not concurrent.futures.wait([future], _LOOK_S).done:
            position = None if self._position is None else self._position()
            if position != before:
                told, before = time.monotonic(), position
                torch.ops.hetseq.progress()
            elif time.monotonic() - told > _LONG_S:
                told = math.inf
                print(f"hetseq: has waited {_LONG_S} s for samples of {self._title}. {_WHY_PROCESSES if position is None else _WHY_STREAM}",
                      file=sys.stderr, flush=True)
        return future.result()

    def results(self, all_arguments: Iterable[Sequence[Any]]) -> Iterator[Any]:
        """What each gives, in order; some are made ahead."""
        remaining = iter(all_arguments)
        waiting = collections.deque(self.submit(*each) for each in itertools.islice(remaining, _AHEAD * self.count))
        while waiting:
            value = self.result(waiting.popleft())
            waiting.extend(self.submit(*each) for each in itertools.islice(remaining, 1))
            yield value

    def end(self) -> None:
        for process in self._processes:
            self._work.put(None)
            process.kill()
