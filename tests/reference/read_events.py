"""usage: python3 tests/reference/read_events.py RUN

Reads RUN/tensorboard with TensorBoard and compares every number with RUN/metrics.jsonl, and the goodput of the last start
with RUN/summary.json. Needs tensorboard.
"""

import json
import math
import pathlib
import struct
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

NO_CURVES = {"update", "samples", "units"}
BY_RANK = {"allocation": "units",
           **{f"rank_{time}_ms": f"{time}_ms" for time in ("compute", "data", "wait", "reduce", "optimizer")}}


def expected_curves(path):
    curves = {}
    for line in map(json.loads, path.open()):
        if line["kind"] == "event":
            continue
        for key, value in line.items():
            if key in BY_RANK:
                scalars = {f"{BY_RANK[key]}/rank-{rank}": of_rank for rank, of_rank in enumerate(value) if of_rank is not None}
            elif key in NO_CURVES or isinstance(value, (str, bool)):
                continue
            else:
                scalars = {f"{line['kind']}/{key}": value}
            for tag, scalar in scalars.items():
                curves.setdefault(tag, {})[line["update"]] = scalar
    return curves


def expected_goodput(path):
    told = json.loads(path.read_text())["goodput"]
    parts = ("lost", "starting", "between", "validating", "saving", "other")
    return {"goodput/share": told["share"], **{f"goodput/{part}": told[f"{part}_s"] / told["seconds"] for part in parts}}


def is_same(value, expected):
    if expected is None:  # not finite
        return not math.isfinite(value)
    return value == struct.unpack("f", struct.pack("f", expected))[0]


run = pathlib.Path(sys.argv[1])
accumulator = EventAccumulator(str(run / "tensorboard"), size_guidance={"scalars": 0})
accumulator.Reload()
curves = expected_curves(run / "metrics.jsonl")
goodput = expected_goodput(run / "summary.json")
tags = set(accumulator.Tags()["scalars"])
assert tags == {*curves, *goodput}, tags ^ {*curves, *goodput}
for tag, expected in curves.items():
    events = accumulator.Scalars(tag)
    assert [event.step for event in events] == list(expected), tag
    for event in events:
        assert is_same(event.value, expected[event.step]), (tag, event, expected[event.step])
starts = len(json.loads((run / "starts.json").read_text())["starts"])
for tag, expected in goodput.items():
    values = [event.value for event in accumulator.Scalars(tag)]
    assert is_same(values[-1], expected) and len(values) >= starts, (tag, values, expected)
print(f"{len(curves)} curves of {sum(map(len, curves.values()))} values are those of metrics.jsonl")
