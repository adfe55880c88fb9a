#!/usr/bin/env python3
"""Sequences per second of GPT-2's pretraining (inputs/python/gpt2.py) under DistributedDataParallel.

mpirun -np 2 python jobs/compare/gpt2_ddp.py 'data/gpt2/train*.h5' --batch 16 [--tuned] [--plain] [--dropout 0.1]
  [--device cuda]

--tuned keeps freed memory. --plain trains on one rank without DistributedDataParallel.
"""
import torch
from torch.nn import functional
from transformers import GPT2Config, GPT2LMHeadModel

import ddp


def main():
    is_plain, dropout = ddp.taken("--plain", False), ddp.taken("--dropout", 0.1)
    width, layers = ddp.taken("--width", 128), ddp.taken("--layers", 4)
    options = ddp.arguments(__doc__, batch=16, devices=("cpu", "cuda"))
    ddp.start_ranks(options.device)
    ids = ddp.read_all(options.data)["input_ids"].long()
    model = GPT2LMHeadModel(GPT2Config(
        vocab_size=8000, n_positions=128, n_embd=width, n_layer=layers, n_head=max(1, width // 32), resid_pdrop=dropout,
        embd_pdrop=dropout, attn_pdrop=dropout, bos_token_id=0, eos_token_id=0)).to(options.device).train()
    if not is_plain:
        model = ddp.wrapped(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)

    def update(chosen):
        optimizer.zero_grad()
        batch = ddp.on_device(ids[chosen], options)
        with ddp.autocast(options):
            logits, targets = model(input_ids=batch).logits[:, :-1].flatten(0, 1), batch[:, 1:].flatten()
            loss = functional.cross_entropy(logits, targets)
        ddp.step(loss, optimizer, options, clipped=list(model.parameters()))

    ddp.measure("gpt2", options, len(ids), update)


if __name__ == "__main__":
    main()
