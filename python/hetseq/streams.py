"""Streams that are read while the training runs: a process of each host iterates one, and keeps a buffer of its samples.

Buffer k holds samples [k N, (k + 1) N) of the stream, which begins anew where it ends. An epoch's samples are those of one
buffer, so that they have numbers, as those of other datasets do.
"""

from __future__ import annotations

import collections
import errno
import hashlib
import itertools
import os
import pathlib
import socket
import struct
import sys
import threading
import time
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, Callable, Iterator, Mapping, NamedTuple, Optional, Sequence

import torch

from .keys import Key, begin_generators
from .processes import start_copy
from .sample_fields import failed
from .task import TaskError

__all__ = ["Stream"]

Row = Mapping[str, Any]
"""A sample's arrays by name."""

_BEHIND = 8192         # samples before the newest buffer that are kept: some ranks ask later than others
_FIRST = 16            # samples that tell how much memory a buffer takes
_MOST_OF_MEMORY = 0.5  # of what is free
_CONNECT_S = 60        # for the process of the host's first rank to begin
_TELL_S = 5            # between two lines about samples that are passed over
_LOOK_S = 0.2          # between two looks at how far it is
_END = object()        # of a pass
_numbers = itertools.count()  # of the streams of this process, which all ranks make in one order


# In the process that iterates.

class _Passes:
    """The samples of a stream, pass after pass."""

    def __init__(self, dataset: Any, seed: int, title: str):
        self._dataset, self._seed, self._title = dataset, seed, title
        self._iterator: Optional[Iterator[Any]] = None
        self.position = 0  # of the sample that comes next

    def has_skip(self) -> bool:
        return callable(getattr(self._dataset, "skip", None))

    def place(self) -> str:
        return f"sample {self.position} of {self._title} ({type(self._dataset).__name__})"

    def samples(self, begin: int) -> Iterator[Any]:
        """Those from `begin` on, and _END behind each pass."""
        self.position = 0
        for number in itertools.count():
            iterator = self._begin(number)
            if number == 0 and begin > 0 and self.has_skip():
                iterator = self._skipped(begin)
            first = self.position
            for sample in iterator:
                if self.position >= begin:
                    yield sample
                self.position += 1
            if self.position == first:
                raise TaskError(f"{self._title} gave no sample")
            yield _END

    def _begin(self, number: int) -> Iterator[Any]:
        if callable(getattr(self._dataset, "set_epoch", None)):
            self._dataset.set_epoch(number)
        begin_generators(Key(self._seed, number).of(-1))
        iterator = iter(self._dataset)
        if iterator is self._iterator:
            raise TaskError(f"{self._title} ended after {self.position:,} samples, and a {type(self._dataset).__name__} can be iterated "
                            "once: give an object whose __iter__ begins anew, such as a torch IterableDataset")
        self._iterator = iterator
        return iterator

    def _skipped(self, begin: int) -> Iterator[Any]:
        """From `begin` on; from the first sample where there are fewer, to count them."""
        rest = iter(self._dataset.skip(begin))
        for sample in rest:
            self.position = begin
            return itertools.chain([sample], rest)
        return self._begin(0)


class _State(NamedTuple):
    position: int  # of the sample that the stream gives next
    length: int    # of a buffer; 0: not known yet
    failure: str


class _Buffers:
    """Filled by a thread, read by others."""

    def __init__(self, passes: _Passes, size: int, convert: Callable[[Any, str], Row], title: str):
        self._passes, self._size, self._convert, self._title = passes, size, convert, title
        self._filled: dict[int, list[Row]] = {}
        self._wanted = {0}  # to be filled
        self._waited: collections.Counter[int] = collections.Counter()  # how many ask for each now
        self._newest = 0    # that somebody asked for
        self._changed = threading.Condition()
        self._length, self._failure = 0, ""

    def state(self) -> _State:
        return _State(self._passes.position, self._length, self._failure)

    def rows(self, number: int, samples: Sequence[int], reads_ahead: bool) -> list[Row]:
        """Of a buffer. `reads_ahead`: the next one will be wanted."""
        with self._changed:
            self._newest = max(self._newest, number)
            self._wanted |= {each for each in (number, number + reads_ahead) if each not in self._filled}
            self._waited[number] += 1
            self._drop()
            self._changed.notify_all()
            self._changed.wait_for(lambda: number in self._filled or self._failure)
            self._waited[number] -= 1
            if self._failure:
                raise TaskError(self._failure)
            return [self._filled[number][sample] for sample in samples]

    def _drop(self) -> None:
        last = self._newest - max(_BEHIND // self._size, 1)
        for number in [each for each in self._filled if each < last and self._waited[each] == 0]:
            del self._filled[number]

    def fill(self) -> None:
        try:
            self._fill()
        except Exception as error:
            with self._changed:
                self._failure = str(failed(error, self._passes.place()))
                self._changed.notify_all()

    def _fill(self) -> None:
        samples, following = self._passes.samples(0), 0  # the buffer that they begin
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._wanted)
                number = min(self._wanted)
            if number < following or number > following and self._passes.has_skip():
                samples, following = self._passes.samples(number * self._size), number
            self._pass_over(samples, (number - following) * self._size)
            rows = self._read(samples, number)
            with self._changed:
                self._filled[number] = rows
                self._wanted.discard(number)
                self._length = self._size
                self._changed.notify_all()
            following = number + 1

    def _read(self, samples: Iterator[Any], number: int) -> list[Row]:
        rows: list[Row] = []
        while len(rows) < self._size:
            sample = next(samples)
            if sample is not _END:
                rows.append(self._convert(sample, self._passes.place()))
            elif number == 0:
                self._size = len(rows)  # the whole of it
            if len(rows) == _FIRST and number == 0:
                self._check_room(sum(value.nbytes for row in rows for value in row.values()) / _FIRST)
        return rows

    def _pass_over(self, samples: Iterator[Any], count: int) -> None:
        told = time.monotonic()
        passed = 0
        while passed < count:
            passed += next(samples) is not _END
            if time.monotonic() - told > _TELL_S and torch.ops.hetseq.launched_rank() <= 0:
                told = time.monotonic()
                print(f"hetseq: passes over the first samples of {self._title} that were trained on, {passed:,} of {count:,} by now",
                      file=sys.stderr, flush=True)

    def _check_room(self, sample_bytes: float) -> None:
        kept = 2 * self._size + max(self._size, _BEHIND)
        free = _free_bytes()
        if free is not None and kept * sample_bytes > _MOST_OF_MEMORY * free:
            raise TaskError(f"{kept:,} samples of {self._title} take some {int(kept * sample_bytes) >> 20:,} MiB of memory (the buffer that is "
                            f"trained on, the one before and the next), and {free >> 20:,} MiB are free, of which they may take "
                            f"{_MOST_OF_MEMORY:.0%}: give a smaller --shuffle-buffer than {self._size:,}")


def _free_bytes() -> Optional[int]:
    try:
        lines = pathlib.Path("/proc/meminfo").read_text().splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return None


def _serve(listener: socket.socket, buffers: _Buffers) -> None:
    threading.Thread(target=buffers.fill, daemon=True).start()
    while True:
        asking, _ = listener.accept()
        if _is_of_this_user(asking):
            threading.Thread(target=_answer, args=(Connection(asking.detach()), buffers), daemon=True).start()
        else:
            asking.close()


def _answer(connection: Connection, buffers: _Buffers) -> None:
    try:
        while True:
            name, arguments = connection.recv()
            try:
                answer = getattr(buffers, name)(*arguments), ""
            except TaskError as error:
                answer = None, str(error)
            connection.send(answer)
    except (EOFError, OSError):  # who asked is gone
        connection.close()


def _is_of_this_user(other: socket.socket) -> bool:
    """Of the process at the other end."""
    _, user, _ = struct.unpack("3i", other.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    return user == os.getuid()


# In a rank, and in the processes that make its samples.

def _address(number: int) -> tuple[bytes, bool]:
    """The address of a stream's process, a name that no file has, and whether this rank starts it: the first of a host
    does, for all."""
    job, place = os.environ.get("PMIX_NAMESPACE"), os.environ.get("OMPI_COMM_WORLD_LOCAL_RANK")
    if job is None or place is None:  # nobody says who else is here
        job, place = str(os.getpid()), "0"
    name = f"{os.getuid()} {socket.gethostname()} {job} {number}"
    return b"\0hetseq-" + hashlib.blake2b(name.encode(), digest_size=16).hexdigest().encode(), place == "0"


class Stream:
    """`dataset`: what can be iterated. `size`: samples of a buffer. `convert`: from a sample, and what an error calls it, to
    its arrays. `title`: of it, for messages."""

    def __init__(self, dataset: Any, size: int, convert: Callable[[Any, str], Row], seed: int, title: str):
        self._title = title
        self._address, begins = _address(next(_numbers))
        self._process = self._begin(_Buffers(_Passes(dataset, seed, title), size, convert, title)) if begins else None
        self._connections: dict[int, Connection] = {}  # by process: copies of this one have their own
        self._asking = threading.Lock()
        self._length = self._position = 0

    def _begin(self, buffers: _Buffers) -> Optional[BaseProcess]:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            try:
                listener.bind(self._address)
            except OSError as error:
                if error.errno == errno.EADDRINUSE:  # two hosts, by their names, in one network: one process serves both
                    return None
                raise
            listener.listen(socket.SOMAXCONN)
            return start_copy(_serve, listener, buffers)

    def __len__(self) -> int:
        """Samples of a buffer: as many as were asked for, or the whole stream, where it has fewer."""
        while self._length == 0:
            if not self.moves():
                time.sleep(_LOOK_S)
        return self._length

    def moves(self) -> bool:
        """Whether the stream has given samples since this was asked last. Raises TaskError where it cannot give more."""
        state = self._ask("state")
        if state.failure:
            raise TaskError(state.failure)
        before, self._position, self._length = self._position, state.position, state.length
        if state.position == before:
            return False
        torch.ops.hetseq.progress()
        return True

    def rows(self, number: int, samples: Sequence[int], reads_ahead: bool) -> list[Row]:
        """Samples of a buffer, by their places in it. Raises TaskError where the stream cannot give them."""
        return self._ask("rows", number, list(samples), reads_ahead)

    def _ask(self, name: str, *arguments: Any) -> Any:
        with self._asking:
            connection = self._connections.get(os.getpid()) or self._connect()
            try:
                connection.send((name, arguments))
                value, failure = connection.recv()
            except (EOFError, OSError) as error:
                raise TaskError(f"the process that reads {self._title} died: it may have lacked memory (a smaller --shuffle-buffer needs "
                                "less)") from error
        if failure:
            raise TaskError(failure)
        return value

    def _connect(self) -> Connection:
        deadline = time.monotonic() + _CONNECT_S
        while True:
            other = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                other.connect(self._address)
                break
            except OSError:
                other.close()
                if time.monotonic() > deadline:
                    raise TaskError(f"no process of this host's first rank gives samples of {self._title}: let all ranks of a host "
                                    "run in one container, or write the samples as shards (--cache-data on)") from None
                time.sleep(_LOOK_S)
        if not _is_of_this_user(other):
            other.close()
            raise TaskError(f"another user's process has the address of {self._title}: start the job again")
        self._connections = {os.getpid(): Connection(other.detach())}
        return self._connections[os.getpid()]

    def end(self) -> None:
        if self._process is not None:
            self._process.kill()
