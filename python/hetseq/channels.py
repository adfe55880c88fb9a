"""What a process and a copy of it say to each other: values through a pipe, their arrays through memory that both share."""

from __future__ import annotations

import itertools
import mmap
import multiprocessing
import pickle
from multiprocessing.connection import Connection
from typing import Any

__all__ = ["DEPTH", "Channel", "make_pair"]

DEPTH = 2            # messages that one end may send before the other answers the first
_SLOT = 32 << 20     # bytes of arrays of a message; pages that were never used take no memory


class Channel:
    """One end. A message's arrays lie in one of DEPTH places, and the message DEPTH later takes that place again: who sends
    waits for the answer to one before it sends the one DEPTH later, and answers are in the order of the messages."""

    def __init__(self, connection: Connection, outgoing: mmap.mmap, incoming: mmap.mmap):
        self._connection, self._outgoing, self._incoming = connection, memoryview(outgoing), memoryview(incoming)
        self._sent, self._received = itertools.count(), itertools.count()

    def send(self, value: Any) -> None:
        """Raises OSError where the other end is gone, and what pickle raises for a value that cannot be sent."""
        arrays: list[pickle.PickleBuffer] = []
        rest = pickle.dumps(value, protocol=5, buffer_callback=arrays.append)
        views = [array.raw() for array in arrays]
        begin = next(self._sent) % DEPTH * _SLOT
        if sum(view.nbytes for view in views) > _SLOT:
            rest, views = pickle.dumps(value, protocol=5), []
        for view in views:
            self._outgoing[begin:begin + view.nbytes] = view
            begin += view.nbytes
        self._connection.send((rest, [view.nbytes for view in views]))

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
