#!/usr/bin/env python3
"""What keyed dropout costs beside torch's, by shape: one thread, in turns.

PYTHONPATH=python build/python/bin/python jobs/compare/dropout_shapes.py [ROUNDS]

Prints medians of the rounds in microseconds for nn.Dropout(0.1) of a tensor (samples, ...): torch's own, and hetseq's keyed
one in its place, with what hetseq needs to find the module; the ratio is that within each round, with its range.
"""
import statistics
import sys

import torch
from torch import nn
from torch.nn import functional as F

from hetseq import randomness
from timing import milliseconds, ratio

SHAPES = [(16, 128, 768), (8, 12, 128, 128), (64, 64, 28, 28), (64, 256, 7, 7), (64, 300, 13), (64, 128, 5), (64, 512, 1),
          (1, 512, 1)]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.dropout = nn.Dropout(0.1)

    def forward(self, x):
        return self.dropout(x)


def one_round(shape):
    x = torch.randn(*shape)
    plain = milliseconds(lambda: F.dropout(x, 0.1, True), 0.2)
    net = Net()
    handle = randomness.install(net)
    ids = torch.arange(shape[0])

    def keyed():
        torch.ops.hetseq.enter_forward(1, 0, ids, True)
        return handle.forward(net, x)

    ours = milliseconds(keyed, 0.2)
    torch.ops.hetseq.leave_step()
    handle.remove()
    return plain, ours


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    torch.set_num_threads(1)
    print("| shape | torch [us] | keyed [us] | keyed / torch's |")
    for shape in SHAPES:
        plain, keyed = zip(*(one_round(shape) for _ in range(rounds)))
        print(f"| {shape} | {1000 * statistics.median(plain):.0f} | {1000 * statistics.median(keyed):.0f} | "
              f"{ratio(keyed, plain)} |")


if __name__ == "__main__":
    main()
