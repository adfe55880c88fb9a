#!/usr/bin/env python3
"""Sequences per second of BERT pretraining (transformers' BertForPreTraining) under DistributedDataParallel.

mpirun -np 2 python jobs/compare/bert_ddp.py '../shared/data/bert/*.hdf5' --batch 16 [--size mini|base] [--device cuda]
  [--tuned]

--tuned computes the vocabulary head on the masked positions alone, and keeps freed memory.
"""
import torch
from torch import nn
from torch.nn import functional
from transformers import BertConfig, BertForPreTraining

import ddp

SIZES = {
    "mini": {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 1024},
    "base": {},
}
IGNORED = -100  # transformers' label of a position that is not masked


class OnMaskedPositions(nn.Module):
    """The same losses; the vocabulary head sees the masked positions only."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, labels, next_sentence_label, **inputs):
        hidden, pooled = self.model.bert(**inputs)[:2]
        masked = labels.flatten() != IGNORED
        words = self.model.cls.predictions(hidden.flatten(0, 1)[masked])
        order = self.model.cls.seq_relationship(pooled)
        return (functional.cross_entropy(words, labels.flatten()[masked]) +
                functional.cross_entropy(order, next_sentence_label))


class WholeModel(nn.Module):
    """The losses as transformers computes them."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, **inputs):
        return self.model(**inputs).loss


def tensors_of(data):
    """The shards' columns as the model's arguments, one row a sequence."""
    positions, ids = data["masked_lm_positions"].long(), data["masked_lm_ids"].long()
    labels = torch.full(data["input_ids"].shape, IGNORED)
    rows, columns = (ids > 0).nonzero(as_tuple=True)  # a row's unused predictions are zeros
    labels[rows, positions[rows, columns]] = ids[rows, columns]
    return {
        "input_ids": data["input_ids"].long(),
        "token_type_ids": data["segment_ids"].long(),
        "attention_mask": data["input_mask"].long(),
        "labels": labels,
        "next_sentence_label": data["next_sentence_labels"].long(),
    }


def main():
    size = ddp.taken("--size", "mini")
    options = ddp.arguments(__doc__, batch=16, devices=("cpu", "cuda"))
    ddp.start_ranks(options.device)
    columns = tensors_of(ddp.read_all(options.data))
    model = BertForPreTraining(BertConfig(**SIZES[size])).to(options.device)
    model = ddp.wrapped((OnMaskedPositions if options.tuned else WholeModel)(model).train())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01, fused=True)

    def update(chosen):
        optimizer.zero_grad()
        with ddp.autocast(options):
            loss = model(**{name: ddp.on_device(column[chosen], options) for name, column in columns.items()})
        ddp.step(loss, optimizer, options)

    ddp.measure(f"bert {size}", options, len(columns["labels"]), update)


if __name__ == "__main__":
    main()
