#!/usr/bin/env python3
"""What FSDP2 (fully_shard, over gloo) does where ranks are unlike: tried on a small network in fp64, one case a run.

mpirun -np 2 python jobs/compare/fsdp_cases.py CASE [FOLDER]

CASE: gradients   equal and unequal batches, a loss that is weighted by hand, and a rank whose sample counts nothing
      skip        rank 1 has no work and does not call the model
      empty       rank 1 gives the model a batch of no samples
      empty-gpt2  the same with GPT-2 of transformers
      parts       how many elements each rank holds, and whether one may hold more
      outside     rank 1 holds no part
      whole       the parameters after four updates, with shards and whole under DistributedDataParallel: the same bits?
      save        four updates, a checkpoint in FOLDER after the second
      continue    from there to the fourth update, on any number of ranks: the same parameters?
"""
import datetime
import os
import sys
import time

import torch
import torch.distributed.checkpoint
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate
from torch.nn.parallel import DistributedDataParallel
from transformers import GPT2Config, GPT2LMHeadModel

import ddp

ROWS, WIDTH, SECONDS = 12, 32, 20


def network():
    torch.manual_seed(1)
    middle = [nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH), nn.Tanh()]
    return nn.Sequential(*middle, nn.Linear(WIDTH, 1)).double()


def shard(model, **options):
    options.setdefault("mesh", init_device_mesh("cpu", (torch.distributed.get_world_size(),)))
    for part in [*(child for child in model if isinstance(child, nn.Linear)), model]:
        fully_shard(part, **options)
    return model


def data(update=0):
    generator = torch.Generator().manual_seed(update)
    return torch.randn(ROWS, WIDTH, dtype=torch.float64, generator=generator)


def whole(tensor):
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def flat(tensors):
    return torch.cat([whole(tensor).detach().flatten() for tensor in tensors])


def say(text):
    if torch.distributed.get_rank() == 0:
        print(text, flush=True)


def difference(own, reference):
    """The largest, over the largest of the reference; or that the bits are the same."""
    if torch.equal(own, reference):
        return "the same bits"
    return f"differs by {((own - reference).abs().max() / reference.abs().max()).item():.1e}"


def gradient_case(name, rows_of_rank_0, weighted=False, dummy=False):
    """Rank 0 takes the first rows and rank 1 the others; the gradient beside that of the mean over all rows."""
    rank, ranks = torch.distributed.get_rank(), torch.distributed.get_world_size()
    reference = network()
    reference(data()).square().mean().backward()
    rows = data()[:rows_of_rank_0] if rank == 0 else data()[rows_of_rank_0:]
    model = shard(network())
    if len(rows) == 0 and dummy:
        loss = 0 * model(data()[:1]).sum()
    elif weighted:
        loss = model(rows).square().sum() * ranks / ROWS
    else:
        loss = model(rows).square().mean()
    loss.backward()
    found = flat(parameter.grad for parameter in model.parameters())
    say(f"{name}: the gradient {difference(found, flat(parameter.grad for parameter in reference.parameters()))}")


def gradients(_):
    gradient_case("6 and 6 rows", 6)
    gradient_case("9 and 3 rows", 9)
    gradient_case("9 and 3 rows, losses weighted by hand", 9, weighted=True)
    gradient_case("12 and 0 rows, weighted by hand, rank 1 runs one that counts nothing", 12, weighted=True, dummy=True)


def skip(_):
    model = shard(network())
    if torch.distributed.get_rank() == 0:
        model(data()).square().sum().backward()
        say("rank 0 goes on")
    else:
        time.sleep(SECONDS + 10)


def empty(_):
    gradient_case("12 and 0 rows", 12)
    gradient_case("12 and 0 rows, losses weighted by hand", 12, weighted=True)


def empty_gpt2(_):
    model = GPT2LMHeadModel(GPT2Config(vocab_size=100, n_positions=16, n_embd=32, n_layer=1, n_head=1))
    fully_shard(model, mesh=init_device_mesh("cpu", (torch.distributed.get_world_size(),)))
    ids = torch.zeros(2, 16, dtype=torch.long)[:2 if torch.distributed.get_rank() == 0 else 0]
    model(input_ids=ids).logits.sum().backward()
    say("GPT-2, 2 and 0 rows: works")


def parts(_):
    counts = [None] * torch.distributed.get_world_size()
    held = sum(parameter.to_local().numel() for parameter in shard(network()).parameters())
    torch.distributed.all_gather_object(counts, held)
    say(f"elements of values, gradients and each moment by rank: {counts}")
    shard(network(), shard_placement_fn=lambda _: Replicate())


def outside(_):
    model = shard(network(), mesh=DeviceMesh("cpu", [0]))
    model(data()).square().mean().backward()
    print(f"rank {torch.distributed.get_rank()} trains", flush=True)


def trained(model, optimizer, updates):
    rank, ranks = torch.distributed.get_rank(), torch.distributed.get_world_size()
    for update in updates:
        optimizer.zero_grad()
        model(data(update)[rank::ranks]).square().mean().backward()
        optimizer.step()
    return model


def adamw(model):
    return torch.optim.AdamW(model.parameters(), lr=1e-2)


def whole_case(_):
    cut, uncut = shard(network()), DistributedDataParallel(network())
    found = flat(trained(cut, adamw(cut), range(4)).parameters())
    reference = flat(trained(uncut, adamw(uncut), range(4)).parameters())
    say(f"parameters after 4 updates, with shards and whole under DDP: {difference(found, reference)}")


def save(folder):
    model = shard(network())
    optimizer = adamw(model)
    trained(model, optimizer, range(2))
    values, state = get_state_dict(model, optimizer)
    torch.distributed.checkpoint.save({"model": values, "optimizer": state}, checkpoint_id=f"{folder}/checkpoint")
    found = flat(trained(model, optimizer, range(2, 4)).parameters())
    if torch.distributed.get_rank() == 0:
        torch.save(found, f"{folder}/end.pt")


def go_on(folder):
    model = shard(network())
    optimizer = adamw(model)
    values, state = get_state_dict(model, optimizer)
    torch.distributed.checkpoint.load({"model": values, "optimizer": state}, checkpoint_id=f"{folder}/checkpoint")
    set_state_dict(model, optimizer, model_state_dict=values, optim_state_dict=state)
    found = flat(trained(model, optimizer, range(2, 4)).parameters())
    say(f"continued on {torch.distributed.get_world_size()} ranks: {difference(found, torch.load(f'{folder}/end.pt'))}")


def main():
    cases = {"gradients": gradients, "skip": skip, "empty": empty, "empty-gpt2": empty_gpt2, "parts": parts,
             "outside": outside, "whole": whole_case, "save": save, "continue": go_on}
    if len(sys.argv) < 2 or sys.argv[1] not in cases:
        sys.exit(__doc__)
    rank = ddp.start_ranks()
    all_ranks, limit = torch.distributed.group.WORLD, datetime.timedelta(seconds=SECONDS)
    torch.distributed.distributed_c10d._set_pg_timeout(limit, all_ranks)
    try:
        cases[sys.argv[1]](sys.argv[2] if len(sys.argv) > 2 else None)
    except Exception as error:  # what is looked for here
        print(f"rank {rank}: {type(error).__name__}: {str(error).splitlines()[0][:200]}", flush=True)
        os._exit(0)  # other ranks may wait for this one
    torch.distributed.barrier()
    os._exit(0)


if __name__ == "__main__":
    main()
