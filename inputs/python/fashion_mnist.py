"""A convolutional network of one's own on Fashion-MNIST; jobs/python-quickstart.sh prepares the data and trains like this:

    mpirun -np 2 python -m hetseq train fashion_mnist.py:FashionMnist --data 'data/fashion-mnist/train*.h5' \
        --valid-data 'data/fashion-mnist/t10k*.h5' --save-dir RUN
"""
import torch
from torch import nn
from torch.nn import functional as F

import hetseq


class FashionMnist(hetseq.Task):
    fields = {"images": hetseq.Field(torch.uint8, shape=(28, 28)),
              "labels": hetseq.Field(torch.int64, minimum=0, maximum=9, meaning="classes", is_target=True)}
    losses, metrics = ["nll"], ["accuracy"]
    options = {"width": hetseq.Option(32, "channels of the first convolution")}
    defaults = {"batch_size": 64, "max_sentences": 32, "max_epoch": 3, "optimizer": "adamw", "lr": 1e-3,
                "log_interval": 200}

    def model(self, config):
        width = config.width
        return nn.Sequential(
            nn.Conv2d(1, width, 3), nn.ReLU(), nn.MaxPool2d(2),          # (n, width, 13, 13)
            nn.Conv2d(width, 2 * width, 3), nn.ReLU(), nn.MaxPool2d(2),  # (n, 2 width, 5, 5)
            nn.Flatten(), nn.Dropout(0.25),
            nn.Linear(50 * width, 128), nn.ReLU(), nn.Dropout(0.5),
            nn.Linear(128, 10))

    def forward(self, model, batch):
        images = batch["images"].unsqueeze(1).to(model[0].weight.dtype) / 255
        scores = model(images)
        sums = {"nll": F.cross_entropy(scores, batch["labels"], reduction="sum")}
        if not model.training:
            sums["accuracy"] = (scores.argmax(1) == batch["labels"]).sum()
        return sums

    def predict(self, model, batch):
        images = batch["images"].unsqueeze(1).to(model[0].weight.dtype) / 255
        return {"classes": model(images).argmax(1)}
