#!/usr/bin/env python3
"""Time of an update and peak memory of GPT-2's pretraining (inputs/python/gpt2.py) under FSDP2, fully_shard, over gloo.

mpirun -np 2 python jobs/compare/gpt2_fsdp.py 'data/gpt2/train*.h5' --batch 4 [--tuned] [--keep-values]

--tuned keeps freed memory. --keep-values does not free the values of other ranks between forward and backward.
"""
import json
import os
import resource
import statistics

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn import functional
from transformers import GPT2Config, GPT2LMHeadModel

import ddp


def sharded(model, keeps_values):
    mesh = init_device_mesh("cpu", (torch.distributed.get_world_size(),))
    for part in [*model.transformer.h, model]:
        fully_shard(part, mesh=mesh, reshard_after_forward=not keeps_values)
    return model


def report(options, rates):
    """As JSON on rank 0: ms an update, and peaks [MiB] by rank."""
    peaks = [None] * torch.distributed.get_world_size()
    torch.distributed.all_gather_object(peaks, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    if torch.distributed.get_rank() == 0:
        samples = options.batch * torch.distributed.get_world_size()
        print(json.dumps({"ms": 1000 * samples / statistics.median(rates), "peaks": peaks}), flush=True)
    torch.distributed.barrier()
    os._exit(0)  # torch 2.11's own ending aborts at times: "terminate called without an active exception"


def main():
    keeps_values = ddp.taken("--keep-values", False)
    width, layers = ddp.taken("--width", 128), ddp.taken("--layers", 4)
    options = ddp.arguments(__doc__, batch=4)
    ddp.start_ranks()
    ids = ddp.read_all(options.data)["input_ids"].long()
    model = sharded(GPT2LMHeadModel(GPT2Config(
        vocab_size=8000, n_positions=128, n_embd=width, n_layer=layers, n_head=max(1, width // 32), bos_token_id=0,
        eos_token_id=0)).train(), keeps_values)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)

    def update(chosen):
        optimizer.zero_grad()
        logits, targets = model(input_ids=ids[chosen]).logits[:, :-1].flatten(0, 1), ids[chosen][:, 1:].flatten()
        ddp.step(functional.cross_entropy(logits, targets), optimizer, options, clipped=list(model.parameters()))

    samples = options.batch * torch.distributed.get_world_size()
    batches = ((chosen, samples) for chosen in ddp.my_batches(len(ids), options.batch, options.updates))
    report(options, ddp.rates(batches, update))


if __name__ == "__main__":
    main()
