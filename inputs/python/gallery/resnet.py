"""A ResNet-18 (He et al. 2016) of transformers, with batch normalisation by groups, on Fashion-MNIST, which
jobs/quickstart.sh prepares:

    mpirun -np 2 python -m hetseq train inputs/python/gallery/resnet.py:ResNet --data 'data/fashion-mnist/train*.h5' \
        --valid-data 'data/fashion-mnist/t10k*.h5' --norm-group 32 --save-dir runs/resnet
"""
import torch
from torch.nn import functional as F
from transformers import ResNetConfig, ResNetForImageClassification

import hetseq


class ResNet(hetseq.Task):
    fields = {"images": hetseq.Field(torch.uint8, (28, 28)), "labels": hetseq.Field(torch.int64, minimum=0, maximum=9)}
    losses, metrics = ["nll"], ["accuracy"]
    options = {"width": hetseq.Option(64, "channels of the first layer")}
    defaults = {"optimizer": "sgd", "momentum": 0.9, "lr": 0.05, "lr-scheduler": "cosine", "weight-decay": 5e-4,
                "batch-size": 256, "max-sentences": 128, "max-epoch": 10, "log-interval": 20}

    def model(self, config):
        width = config.width
        model = ResNetForImageClassification(ResNetConfig(
            num_channels=1, embedding_size=width, hidden_sizes=[width, 2 * width, 4 * width, 8 * width],
            depths=[2, 2, 2, 2], layer_type="basic", num_labels=10))
        embedder = model.resnet.embedder  # small images keep their size at the beginning
        embedder.embedder.convolution = torch.nn.Conv2d(1, width, 3, padding=1, bias=False)
        embedder.pooler = torch.nn.Identity()
        return model

    def logits(self, model, batch):
        return model(pixel_values=batch["images"].unsqueeze(1).float() / 255 - 0.5).logits

    def forward(self, model, batch):
        logits = self.logits(model, batch)
        sums = {"nll": F.cross_entropy(logits, batch["labels"], reduction="sum")}
        if not model.training:
            sums["accuracy"] = (logits.argmax(1) == batch["labels"]).sum()
        return sums

    def predict(self, model, batch):
        return {"labels": self.logits(model, batch).argmax(1)}
