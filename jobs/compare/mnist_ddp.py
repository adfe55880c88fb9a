#!/usr/bin/env python3
"""Samples per second of PyTorch's MNIST example (two convolutions, Adadelta) under DistributedDataParallel.

mpirun -np 2 python jobs/compare/mnist_ddp.py 'data/mnist/train*.h5' --batch 32 [--device cuda]
"""
import torch
from torch import nn
from torch.nn import functional

import ddp


class Net(nn.Module):
    """The network of pytorch/examples/mnist: 1,199,882 parameters."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3)
        self.conv2 = nn.Conv2d(32, 64, 3)
        self.dropout1 = nn.Dropout(0.25)
        self.dropout2 = nn.Dropout(0.5)
        self.fc1 = nn.Linear(9216, 128)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, images):
        x = functional.relu(self.conv1(images))
        x = functional.relu(self.conv2(x))
        x = self.dropout1(functional.max_pool2d(x, 2)).flatten(1)
        x = self.dropout2(functional.relu(self.fc1(x)))
        return functional.log_softmax(self.fc2(x), dim=1)


def main():
    options = ddp.arguments(__doc__, batch=32, devices=("cpu", "cuda"))
    ddp.start_ranks(options.device)
    data = ddp.read_all(options.data)
    images = data["images"].unsqueeze(1).float().div_(255).sub_(0.1307).div_(0.3081)
    labels = data["labels"].long()
    model = Net()
    if options.tuned and options.device == "cpu":
        images = images.to(memory_format=torch.channels_last)
        model = model.to(memory_format=torch.channels_last)
    model = ddp.wrapped(model.to(options.device))
    optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0, foreach=options.tuned)

    def update(chosen):
        optimizer.zero_grad()
        batch = ddp.on_device(images[chosen], options)
        with ddp.autocast(options):
            loss = functional.nll_loss(model(batch), ddp.on_device(labels[chosen], options))
        ddp.step(loss, optimizer, options)

    ddp.measure("mnist", options, len(labels), update)


if __name__ == "__main__":
    main()
