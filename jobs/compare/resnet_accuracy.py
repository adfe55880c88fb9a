#!/usr/bin/env python3
"""Accuracy of the ResNet of inputs/python/gallery/resnet.py in plain PyTorch, on one device: the groups of a batch one
after the other, their gradients summed.

resnet_accuracy.py TRAIN VALID --seed 1 --width 16 --updates 200 --batch 64 --group 32
"""
import argparse

import torch
from torch.nn import functional

import ddp
from resnet_ddp import resnet


def loss_and_hits(model, images, labels):
    logits = model(pixel_values=images.unsqueeze(1).float() / 255 - 0.5).logits
    return functional.cross_entropy(logits, labels, reduction="sum"), int((logits.argmax(1) == labels).sum())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("train")
    parser.add_argument("valid")
    for name, default in (("seed", 1), ("width", 16), ("updates", 200), ("batch", 64), ("group", 32)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    torch.set_num_threads(1)
    train, valid = (ddp.read_all(pattern) for pattern in (options.train, options.valid))
    model = resnet(options.width)
    matrices, vectors = ([p for p in model.parameters() if (p.dim() >= 2) == wanted] for wanted in (True, False))
    optimizer = torch.optim.SGD([{"params": matrices, "weight_decay": 5e-4}, {"params": vectors, "weight_decay": 0}],
                                lr=0.05, momentum=0.9)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.updates)
    order = torch.randperm(len(train["labels"]))
    for update in range(options.updates):
        optimizer.zero_grad()
        chosen = order[torch.arange(update * options.batch, (update + 1) * options.batch) % len(order)]
        for group in chosen.split(options.group):
            loss, _ = loss_and_hits(model, train["images"][group], train["labels"][group].long())
            (loss / options.batch).backward()
        optimizer.step()
        schedule.step()
    model.eval()
    with torch.no_grad():
        hits = sum(loss_and_hits(model, images, labels.long())[1]
                   for images, labels in zip(valid["images"].split(250), valid["labels"].split(250)))
    print(f"accuracy {hits / len(valid['labels']):.4f}")


if __name__ == "__main__":
    main()
