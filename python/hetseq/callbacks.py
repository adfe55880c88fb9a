"""What a run tells the callbacks of a task: on rank 0, in a thread of their own."""

from __future__ import annotations

import json
import threading
from typing import Any, Callable, Iterable, Optional

import torch

from .task import Task, TaskError, overrides

__all__ = ["EVENTS", "Callbacks"]

EVENTS = ("start", "update", "validation", "checkpoint", "end")
_TURN_S = 0.1  # between looks for events: the interpreter is taken from the task once in a while, not after each update
_LOOKS_S = 5.0  # between signs of life while the last events are heard


def _hears(listener: Any, event: str) -> bool:
    if isinstance(listener, Task):
        return overrides(listener, "on_" + event)
    return callable(getattr(listener, "on_" + event, None))


def _listeners(task: Task, given: Iterable[Any]) -> list[Any]:
    own = list(task.callbacks)
    for listener in [*own, *given]:
        if isinstance(listener, type) or not any(_hears(listener, event) for event in EVENTS):
            raise TaskError(f"the callback {listener!r} has none of the methods {', '.join('on_' + event for event in EVENTS)}: "
                            "give an object that has some of them")
    return [task, *own, *given]


class Callbacks:
    """The callbacks of one training. A thread takes the run's events, and calls them, one event after the other. `failed`: is
    called there with what one of them has thrown; none is called behind it."""

    def __init__(self, task: Task, given: Iterable[Any], failed: Callable[[BaseException], None]) -> None:
        self._listeners = _listeners(task, given)
        self._failed = failed
        self._has_failed = False
        self._ends = threading.Event()
        self._thread: Optional[threading.Thread] = None

    def events(self) -> list[str]:
        """Those that somebody hears of."""
        return [event for event in EVENTS if any(_hears(listener, event) for listener in self._listeners)]

    def begin(self) -> None:
        self._thread = threading.Thread(target=self._run, name="hetseq callbacks", daemon=True)
        self._thread.start()

    def finish(self, seconds: Optional[float] = None) -> None:
        """Waits until all events were heard, or for so long."""
        if self._thread is None:
            return
        self._ends.set()
        left = float("inf") if seconds is None else seconds
        while self._thread.is_alive() and left > 0:
            self._thread.join(min(_LOOKS_S, left))
            left -= _LOOKS_S
            torch.ops.hetseq.progress()
        self._thread = None

    def _run(self) -> None:
        while not self._ends.wait(_TURN_S):
            self._hear()
        self._hear()

    def _hear(self) -> None:
        """All events that are waiting. Also behind a failure: nobody shall wait for a queue that is full."""
        for event, info in zip(*torch.ops.hetseq.take_events()):
            if not self._has_failed:
                self._call(event, info)

    def _call(self, event: str, info: str) -> None:
        try:
            for listener in self._listeners:
                if _hears(listener, event):
                    getattr(listener, "on_" + event)(json.loads(info))
        except BaseException as error:  # it ends the run
            self._has_failed = True
            self._failed(error)
