#!/usr/bin/env python3
"""What keyed dropout costs in attention: forward and backward of scaled_dot_product_attention, one thread, in turns.

PYTHONPATH=python build/python/bin/python jobs/compare/attention_dropout.py [ROUNDS]

Prints medians of the rounds in ms: torch's fused kernel without dropout, torch with dropout 0.1, and hetseq's keyed
dropout of 0.1 in its place; the ratios are those within each round, with their range.
"""
import statistics
import sys

import torch
from torch import nn
from torch.nn import functional as F

from hetseq import randomness
from timing import milliseconds, ratio

SIZES = {"BERT base, 8 x 128 tokens": (8, 12, 128, 64, False), "BERT base, 2 x 512 tokens": (2, 12, 512, 64, False),
         "GPT-2 small, 8 x 128 tokens": (8, 12, 128, 64, True)}


class Attention(nn.Module):
    def __init__(self, dropout, is_causal):
        super().__init__()
        self.dropout, self.is_causal = dropout, is_causal

    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout, is_causal=self.is_causal)


def trained_ms(call, q, k, v):
    """Of a forward and a backward."""
    return milliseconds(lambda: call(q, k, v).sum().backward(), 0.5)


def one_round(samples, heads, length, width, is_causal):
    q, k, v = (torch.randn(samples, heads, length, width, requires_grad=True) for _ in range(3))
    plain = trained_ms(Attention(0.0, is_causal), q, k, v)
    dropped = trained_ms(Attention(0.1, is_causal), q, k, v)
    module = Attention(0.1, is_causal)
    handle = randomness.install(module)
    ids = torch.arange(samples)

    def keyed(q, k, v):
        torch.ops.hetseq.enter_forward(1, 0, ids, True)
        return handle.forward(module, q, k, v)

    ours = trained_ms(keyed, q, k, v)
    torch.ops.hetseq.leave_step()
    handle.remove()
    return plain, dropped, ours


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    torch.set_num_threads(1)
    print("| attention | without dropout [ms] | torch, dropout | keyed | keyed / without | keyed / torch's |")
    for name, sizes in SIZES.items():
        one_round(*sizes)
        plain, dropped, keyed = zip(*(one_round(*sizes) for _ in range(rounds)))
        middle = " | ".join(f"{statistics.median(values):.1f}" for values in (plain, dropped, keyed))
        print(f"| {name} | {middle} | {ratio(keyed, plain)} | {ratio(keyed, dropped)} |")


if __name__ == "__main__":
    main()
