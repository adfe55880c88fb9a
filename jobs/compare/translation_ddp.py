#!/usr/bin/env python3
"""Target tokens per second of torch.nn.Transformer (tiny: 128 wide, 4 + 4 layers) under DistributedDataParallel.

mpirun -np 2 python jobs/compare/translation_ddp.py 'multi30k/train*.h5' --batches LISTS [--tuned]

LISTS has the samples of each update as hetseq takes them, a JSON list a line (build/cpu/bin/batch_lists). Each rank takes
its half of an update's target tokens. --tuned computes the vocabulary's logits for target tokens only, uses the fused
optimizer and keeps freed memory.
"""
import argparse
import json
import math

import torch
from torch import nn
from torch.nn import functional

import ddp

PADDING = -100
WIDTH, DROPOUT = 128, 0.3


class Translator(nn.Module):
    """One table of tokens for both sides and the output, sinusoidal positions, dropout outside of attention and of the
    feed-forward layers, as fairseq's recipe for small corpora has it."""

    def __init__(self, vocabulary, tuned):
        super().__init__()
        self.tuned = tuned
        self.table = nn.Embedding(vocabulary, WIDTH)
        nn.init.normal_(self.table.weight, std=WIDTH ** -0.5)
        self.transformer = nn.Transformer(WIDTH, nhead=4, num_encoder_layers=4, num_decoder_layers=4,
                                          dim_feedforward=2 * WIDTH, dropout=DROPOUT, batch_first=True)
        # nn.Transformer has these two where post-norm models have none.
        self.transformer.encoder.norm = self.transformer.decoder.norm = None
        for module in self.transformer.modules():
            if isinstance(module, nn.MultiheadAttention):
                module.dropout = 0.0
            if isinstance(module, (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer)):
                module.dropout.p = 0.0
        self.dropout = nn.Dropout(DROPOUT)
        place = torch.arange(1024).unsqueeze(1) / 10000 ** (torch.arange(0, WIDTH, 2) / WIDTH)
        self.register_buffer("positions", torch.stack([place.sin(), place.cos()], 2).flatten(1), persistent=False)

    def embed(self, ids):
        return self.dropout(self.table(ids) * math.sqrt(WIDTH) + self.positions[:ids.shape[1]])

    def forward(self, source, padding, target_input, labels):
        causal = nn.Transformer.generate_square_subsequent_mask(target_input.shape[1])
        hidden = self.transformer(self.embed(source), self.embed(target_input), tgt_mask=causal, tgt_is_causal=True,
                                  src_key_padding_mask=padding, memory_key_padding_mask=padding)
        if self.tuned:
            is_token = labels != PADDING
            hidden, labels = hidden[is_token], labels[is_token]
        logits = functional.linear(hidden, self.table.weight)
        return functional.cross_entropy(logits.flatten(0, -2), labels.flatten(), ignore_index=PADDING,
                                        label_smoothing=0.1, reduction="sum")


def rows_of(data, name):
    offsets = data[name + "_offsets"].tolist()
    values = data[name].long()
    return [values[begin:end] for begin, end in zip(offsets, offsets[1:])]


def half_of(samples, lengths, rank, ranks):
    """This rank's part, contiguous, by target tokens."""
    total, sum_so_far, mine = sum(lengths[i] for i in samples), 0, []
    for i in samples:
        if int(sum_so_far * ranks / total) == rank:
            mine.append(i)
        sum_so_far += lengths[i]
    return mine


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", help="HDF5 files (a glob)")
    parser.add_argument("--batches", required=True, help="samples of each update")
    parser.add_argument("--tuned", action="store_true")
    options = parser.parse_args()
    if options.tuned:
        ddp.keep_freed_memory()
    rank = ddp.start_ranks()
    ranks = torch.distributed.get_world_size()
    data = ddp.read_all(options.data)
    source, target = rows_of(data, "source"), rows_of(data, "target")
    lengths = [len(row) for row in target]
    with open(options.batches, encoding="utf-8") as file:
        updates = [json.loads(line) for line in file]
    options.updates = len(updates)
    model = ddp.wrapped(Translator(10000, options.tuned).train())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=options.tuned)
    padded = lambda rows, value: nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=value)

    def batches():
        for samples in updates:
            mine = half_of(samples, lengths, rank, ranks)
            labels = padded([target[i] for i in mine], PADDING)
            ids = padded([source[i] for i in mine], 0)
            padding = torch.arange(ids.shape[1]) >= torch.tensor([len(source[i]) for i in mine]).unsqueeze(1)
            inputs = functional.pad(labels[:, :-1].clamp_min(0), (1, 0), value=1)
            tokens = sum(lengths[i] for i in samples)
            yield (ids, padding, inputs, labels, tokens), tokens

    def update(batch):
        ids, padding, inputs, labels, tokens = batch
        optimizer.zero_grad()
        # DistributedDataParallel averages over ranks.
        (model(ids, padding, inputs, labels) * (ranks / tokens)).backward()
        optimizer.step()

    ddp.report("translation", options, "units_per_second", ddp.rates(batches(), update))


if __name__ == "__main__":
    main()
