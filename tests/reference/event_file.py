"""Writes event_file.json: records as TensorBoard's own writer makes them.

Needs tensorboard. Run again only when the reference itself changes: python3 tests/reference/event_file.py
"""

import io
import json
import math
import pathlib

import tensorboard
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

WALL_TIME = 1700000000.25
SCALARS = [("train/loss", 3, 0.625), ("train/grad_norm", 300, math.inf), ("valid/accuracy", 2**40, -0.1)]


class Buffer(io.BytesIO):
    def close(self):
        pass


buffer = Buffer()
writer = RecordWriter(buffer)
events = [
    Event(wall_time=WALL_TIME, file_version="brain.Event:2"),
    Event(wall_time=WALL_TIME, step=3, session_log=SessionLog(status=SessionLog.START)),
]
for tag, step, value in SCALARS:
    summary = Summary(value=[Summary.Value(tag=tag, simple_value=value)])
    events.append(Event(wall_time=WALL_TIME, step=step, summary=summary))
for event in events:
    writer.write(event.SerializeToString())
writer.flush()

result = {"tensorboard": tensorboard.__version__, "hex": buffer.getvalue().hex()}
path = pathlib.Path(__file__).with_suffix(".json")
path.write_text(json.dumps(result, indent=1) + "\n")
