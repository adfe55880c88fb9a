#!/usr/bin/env python3
"""PyTorch's MNIST example under DDP as torchrun's users make it survive: a checkpoint every so many seconds, from which a
restarted group goes on. Rank 0 writes the time of each update into FOLDER/updates.

torchrun --standalone --nproc-per-node 2 --max-restarts 1000 jobs/compare/restarts_ddp.py 'data/fashion-mnist/train*.h5' FOLDER BATCH SECONDS
"""
import os
import sys
import time

import torch
from torch.nn import functional

import ddp
from mnist_ddp import Net


def main():
    pattern, folder, batch, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    torch.manual_seed(1)
    data = ddp.read_all(pattern)
    images = data["images"].unsqueeze(1).float().div_(255).sub_(0.1307).div_(0.3081)
    labels = data["labels"].long()
    model = ddp.wrapped(Net())
    optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0)
    path, update = os.path.join(folder, "checkpoint.pt"), 0
    if os.path.exists(path):
        state = torch.load(path)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        update = state["update"]
    is_first = torch.distributed.get_rank() == 0
    log = open(os.path.join(folder, "updates"), "a", buffering=1) if is_first else None
    saved = time.monotonic()
    for chosen in ddp.my_batches(len(labels), batch, 1 << 40):
        begin = time.monotonic()
        optimizer.zero_grad()
        functional.nll_loss(model(images[chosen]), labels[chosen]).backward()
        optimizer.step()
        update += 1
        if not is_first:
            continue
        log.write(f"{update} {time.monotonic() - begin}\n")
        if time.monotonic() - saved >= seconds:
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "update": update}, path + ".tmp")
            os.replace(path + ".tmp", path)
            saved = time.monotonic()


if __name__ == "__main__":
    main()
