#!/usr/bin/env python3
"""Images per second of the ResNet-18 of inputs/python/gallery/resnet.py under DistributedDataParallel, which normalises
each rank's batch by itself.

mpirun -np 2 python jobs/compare/resnet_ddp.py 'data/fashion-mnist/train*.h5' --batch 32 [--tuned] [--accelerate]
  [--device cuda]

--tuned keeps freed memory. --accelerate leaves devices, ranks and backward to Accelerate.
"""
import pathlib
import sys
import types

import torch
from torch.nn import functional

import ddp

ROOT = pathlib.Path(__file__).resolve().parents[2]


def resnet(width):
    sys.path[:0] = [str(ROOT / "python"), str(ROOT / "inputs/python/gallery")]
    from resnet import ResNet
    return ResNet().model(types.SimpleNamespace(width=width)).train()


def main():
    uses_accelerate = ddp.taken("--accelerate", False)
    options = ddp.arguments(__doc__, batch=32, devices=("cpu", "cuda"))
    ddp.start_ranks(options.device)
    columns = ddp.read_all(options.data)
    images, labels = columns["images"], columns["labels"].long()
    model = resnet(64).to(options.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4, fused=True)
    backward = torch.Tensor.backward
    if uses_accelerate:
        from accelerate import Accelerator
        accelerator = Accelerator(cpu=options.device == "cpu")
        model, optimizer = accelerator.prepare(model, optimizer)
        backward = accelerator.backward
    else:
        model = ddp.wrapped(model)

    def update(chosen):
        optimizer.zero_grad()
        batch = ddp.on_device(images[chosen], options)
        with ddp.autocast(options):
            logits = model(pixel_values=batch.unsqueeze(1).float() / 255 - 0.5).logits
            loss = functional.cross_entropy(logits, ddp.on_device(labels[chosen], options))
        ddp.step(loss, optimizer, options, backward=backward)

    ddp.measure("resnet", options, len(images), update)


if __name__ == "__main__":
    main()
