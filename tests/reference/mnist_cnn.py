"""Writes mnist_cnn.json: summed loss and gradient norms of the network of PyTorch's MNIST example in fp64, dropout off,
with the parameters and images of formula.py.

Needs torch. Run again only when the reference itself changes: python3 tests/reference/mnist_cnn.py
"""

import json
import pathlib

import torch
from torch import nn
from torch.nn import functional as F

import formula

IMAGES = 5


class Net(nn.Module):
    """https://github.com/pytorch/examples/blob/main/mnist/main.py, without the dropouts."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3, 1)
        self.conv2 = nn.Conv2d(32, 64, 3, 1)
        self.fc1 = nn.Linear(9216, 128)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x):
        x = F.relu(self.conv2(F.relu(self.conv1(x))))
        x = torch.flatten(F.max_pool2d(x, 2), 1)
        return F.log_softmax(self.fc2(F.relu(self.fc1(x))), dim=1)


model = Net().double()
formula.fill(model)
images = torch.from_numpy(formula.uniform("images", (IMAGES, 1, 28, 28)))
labels = torch.arange(IMAGES) * 3 % 10
loss = F.nll_loss(model(images), labels, reduction="sum")
loss.backward()
result = {"torch": torch.__version__, "images": IMAGES, "labels": labels.tolist(), "loss": loss.item(),
          "gradient_norms": formula.gradient_norms(model)}
path = pathlib.Path(__file__).with_suffix(".json")
path.write_text(json.dumps(result, indent=1) + "\n")
