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
import socket
import struct
import threading
import time
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, Callable, Iterator, Mapping, NamedTuple, Optional, Sequence

import torch

from .keys import Key, begin_generators
from .processes import say, start_copy
from .sample_fields import failed
from .task import SampleError

__all__ = ["Stream"]

Row = Mapping[str, Any]
"""A sample's arrays by name."""

_BEHIND = 8192         # samples before the newest buffer that are kept: some ranks ask later than others
_FIRST = 16            # samples that tell how much memory a buffer takes
_MOST_OF_MEMORY = 0.5  # of what is free
_CONNECT_S = 20        # for the process of the host's first rank to begin
_TELL_S = 5            # between two lines about samples that are passed over
_LOOK_S = 0.1          # between two looks at how far it is
_END = object()        # of a pass
_numbers = itertools.count()  # of the streams of this process, which all ranks make in one order


# In the process that iterates.

class _Passes:
    """The samples of a stream, pass after pass."""

    def __init__(self, dataset: Any, seed: int, title: str):
        self._dataset, self._seed, self._title = dataset, seed, title
        self._iterator: Optional[Iterator[Any]] = None
        self.position = 0  # of the sample that comes next
        self.length = 0    # of the pass that ended last

    def has_skip(self) -> bool:
        return callable(getattr(self._dataset, "skip", None))

    def place(self) -> str:
        return f"sample {self.position} of {self._title} ({type(self._dataset).__name__})"

    def samples(self, begin: int) -> Iterator[Any]:
        """Those from `begin` on, and _END behind each pass. They are at `position`."""
        self.position = 0
        for number in itertools.count():
            first, iterator = self.position, self._begin(number)
            if number == 0 and begin > 0 and self.has_skip():
                iterator = self._skipped(begin)
            for sample in iterator:
                if self.position >= begin:
                    yield sample
                self.position += 1
            self.length = self.position - first
            if self.length == 0:
                raise SampleError(f"{self._title} gave no sample")
            yield _END

    def _begin(self, number: int) -> Iterator[Any]:
        if callable(getattr(self._dataset, "set_epoch", None)):
            self._dataset.set_epoch(number)
        begin_generators(Key(self._seed, number).of(-1))
        iterator = iter(self._dataset)
        if iterator is self._iterator:
            raise SampleError(f"{self._title} ended after {self.position:,} samples, and a {type(self._dataset).__name__} can be iterated "
                            "once: give an object whose __iter__ begins anew, such as a torch IterableDataset")
        self._iterator = iterator
        return iterator

    def _skipped(self, begin: int) -> Iterator[Any]:
        """From `begin` on; from the first sample where there are fewer, to count them."""
        rest = iter(self._dataset.skip(begin))
        for sample in rest:
            self.position = begin
            say(f"{begin:,} samples of {self._title} that were trained on are skipped")
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
                raise SampleError(self._failure)
            return [self._filled[number][sample] for sample in samples]

    def _drop(self) -> None:
        last = self._newest - max(_BEHIND // self._size, 1)
        for number in [each for each in self._filled if each < last and self._waited[each] == 0]:
            del self._filled[number]

    def fill(self) -> None:
        try:
            self._fill()
        except BaseException as error:  # one that ends a thread, too, such as sys.exit: others wait for it
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
            elif self._passes.length > self._size:
                say(f"{self._title} has ended after {self._passes.length:,} samples, and begins anew")
            if len(rows) == _FIRST and number == 0:
                self._check_room(sum(value.nbytes for row in rows for value in row.values()) / _FIRST)
        return rows

    def _pass_over(self, samples: Iterator[Any], count: int) -> None:
        told = time.monotonic()
        passed = 0
        while passed < count:
            passed += next(samples) is not _END
            if time.monotonic() - told > _TELL_S:
                told = time.monotonic()
                say(f"passes over samples of {self._title} that were trained on, {passed:,} of {count:,} by now")

    def _check_room(self, sample_bytes: float) -> None:
        kept = 2 * self._size + max(self._size, _BEHIND)
        needed, free = kept * sample_bytes / 2**20, torch.ops.hetseq.available_memory_mb()
        if needed > _MOST_OF_MEMORY * free:
            raise SampleError(f"{kept:,} samples of {self._title} take some {needed:,.0f} MiB of memory (the buffer that is trained on, "
                            f"the one before and the next), and {free:,} MiB are free, of which they may take {_MOST_OF_MEMORY:.0%}: "
                            f"give a smaller --shuffle-buffer than {self._size:,}")


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
            except SampleError as error:
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
        self._title, self._size = title, size
        self._address, begins = _address(next(_numbers))
        self._process = self._begin(_Buffers(_Passes(dataset, seed, title), size, convert, title)) if begins else None
        self._connections: dict[int, Connection] = {}  # by process: copies of this one have their own
        self._asking = threading.Lock()
        self._length = 0

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
        told, before = time.monotonic(), self.position()
        while self._length == 0:
            time.sleep(_LOOK_S)
            if (position := self.position()) != before:
                before = position
                torch.ops.hetseq.progress()
            if time.monotonic() - told > _TELL_S:
                told = time.monotonic()
                say(f"reads the first buffer of {self._title}, {position:,} of {self._size:,} samples by now")
            if torch.ops.hetseq.asked_to_stop():
                raise SampleError(f"asked to stop while the first buffer of {self._title} was read ({position:,} samples by now)")
        return self._length

    def _tell_length(self) -> None:
        if self._length < self._size:
            say(f"{self._title} is a stream of {self._length:,} samples, which fit into the buffer (--shuffle-buffer)")
        else:
            say(f"{self._title} is a stream, read in buffers of {self._length:,} samples (--shuffle-buffer): a training takes one "
                 "each epoch, anything else the first alone")

    def position(self) -> int:
        """Of the sample that the stream gives next. Raises SampleError where it cannot give more."""
        state = self._ask("state")
        if state.failure:
            raise SampleError(state.failure)
        if self._length == 0 and state.length > 0:
            self._length = state.length
            self._tell_length()
        return state.position

    def rows(self, number: int, samples: Sequence[int], reads_ahead: bool) -> list[Row]:
        """Samples of a buffer, by their places in it. Raises SampleError where the stream cannot give them."""
        return self._ask("rows", number, list(samples), reads_ahead)

    def _ask(self, name: str, *arguments: Any) -> Any:
        with self._asking:
            connection = self._connections.get(os.getpid()) or self._connect()
            try:
                connection.send((name, arguments))
                value, failure = connection.recv()
            except (EOFError, OSError) as error:
                raise SampleError(f"the process that reads {self._title} died: it may have lacked memory (a smaller --shuffle-buffer needs "
                                "less)") from error
        if failure:
            raise SampleError(failure)
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
                    raise SampleError(f"no process of this host's first rank gives samples of {self._title}: let all ranks of a host "
                                    "run in one container, or write the samples as shards (--cache-data on)") from None
                time.sleep(_LOOK_S)
        if not _is_of_this_user(other):
            other.close()
            raise SampleError(f"another user's process has the address of {self._title}: start the job again")
        self._connections = {os.getpid(): Connection(other.detach())}
        return self._connections[os.getpid()]

    def end(self) -> None:
        if self._process is not None:
            self._process.kill()
