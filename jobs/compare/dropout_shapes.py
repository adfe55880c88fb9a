#!/usr/bin/env python3
"""What keyed dropout costs beside torch's, by shape: one thread, in turns.

PYTHONPATH=python build/python/bin/python jobs/compare/dropout_shapes.py [ROUNDS]

Prints medians of the rounds in microseconds for nn.Dropout(0.1) of a tensor (samples, ...): torch's own, and hetseq's keyed
one in its place, with what hetseq needs to find the module; the ratio is that within each round, with its range.
"""
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

from hetseq import randomness

SHAPES = [(16, 128, 768), (8, 12, 128, 128), (64, 64, 28, 28), (64, 256, 7, 7), (64, 300, 13), (64, 128, 5), (64, 512, 1),
          (1, 512, 1)]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.dropout = nn.Dropout(0.1)

    def forward(self, x):
        return self.dropout(x)


def microseconds(call, seconds=0.2):
    """Of a call: the mean over about `seconds`."""
    call()
    times, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        call()
        times += 1
    return 1e6 * (time.perf_counter() - begin) / times


def one_round(shape):
    x = torch.randn(*shape)
    plain = microseconds(lambda: F.dropout(x, 0.1, True))
    net = Net()
    handle = randomness.install(net)
    ids = torch.arange(shape[0])

    def keyed():
        torch.ops.hetseq.enter_forward(1, 0, ids, True)
        return handle.forward(net, x)

    ours = microseconds(keyed)
    torch.ops.hetseq.leave_step()
    handle.remove()
    return plain, ours


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    torch.set_num_threads(1)
    print("| shape | torch [us] | keyed [us] | keyed / torch's |")
    for shape in SHAPES:
        plain, keyed = zip(*(one_round(shape) for _ in range(rounds)))
        ratios = [b / a for a, b in zip(plain, keyed)]
        print(f"| {shape} | {statistics.median(plain):.0f} | {statistics.median(keyed):.0f} | "
              f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) |")


if __name__ == "__main__":
    main()
