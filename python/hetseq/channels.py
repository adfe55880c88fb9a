"""What a process and a copy of it say to each other: values through a pipe, their arrays through memory that both share."""

from __future__ import annotations

import itertools
import mmap
import multiprocessing
import pickle
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

__all__ = ["DEPTH", "Channel", "Message", "make_pair"]

DEPTH = 2            # messages that one end may send before the other answers the first
_SLOT = 32 << 20     # bytes of arrays of a message; pages that were never used take no memory
_IN_PIPE = 32 << 10  # bytes that a pipe holds until they are read, on any system


class Message(NamedTuple):
    rest: bytes                # all but the arrays, or with them
    arrays: list[memoryview]

    @property
    def waits(self) -> bool:
        """Whether sending it may last until the other end receives it."""
        return len(self.rest) > _IN_PIPE


class Channel:
    """One end. A message's arrays lie in one of DEPTH places, and the message DEPTH later takes that place again: who sends
    waits for the answer to one before it sends the one DEPTH later, and answers are in the order of the messages."""

    def __init__(self, connection: Connection, outgoing: mmap.mmap, incoming: mmap.mmap):
        self._connection, self._outgoing, self._incoming = connection, memoryview(outgoing), memoryview(incoming)
        self._sent, self._received = itertools.count(), itertools.count()

    @staticmethod
    def message(value: Any) -> Message:
        """Raises what pickle raises for a value that cannot be sent."""
        arrays: list[pickle.PickleBuffer] = []
        rest = pickle.dumps(value, protocol=5, buffer_callback=arrays.append)
        views = [array.raw() for array in arrays]
        return Message(rest, views) if sum(view.nbytes for view in views) <= _SLOT else Message(pickle.dumps(value, protocol=5), [])

    def send(self, message: Message) -> None:
        """One that `waits` is sent only to an end that sends nothing itself. Raises OSError where the other end is gone."""
        begin = next(self._sent) % DEPTH * _SLOT
        for view in message.arrays:
            self._outgoing[begin:begin + view.nbytes] = view
            begin += view.nbytes
        self._connection.send((message.rest, [view.nbytes for view in message.arrays]))

    def receive(self) -> Any:
        """Raises EOFError or OSError where the other end is gone."""
        rest, sizes = self._connection.recv()
        begins = itertools.accumulate(sizes, initial=next(self._received) % DEPTH * _SLOT)
        return pickle.loads(rest, buffers=[bytearray(self._incoming[begin:begin + size]) for begin, size in zip(begins, sizes)])

    def close(self) -> None:
        self._connection.close()


def make_pair() -> tuple[Channel, Channel]:
    """Both ends, made before the process is copied."""
    here, there = multiprocessing.Pipe()
    to, back = (mmap.mmap(-1, DEPTH * _SLOT) for _ in range(2))
    return Channel(here, to, back), Channel(there, back, to)
