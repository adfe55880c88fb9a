import hetseq
import torch
from images import augment, network, photos, to_float
from torch.nn import functional as F


class Photos(hetseq.Task):
    fields = {"image": hetseq.Field(torch.uint8, (3, 32, 32)), "label": hetseq.Field(torch.int64)}
    losses, metrics = ["nll"], ["accuracy"]
    defaults = {"batch-size": 64, "max-sentences": 32, "optimizer": "adamw", "lr": 1e-3, "max-epoch": 3}

    def model(self, config):
        return network()

    def dataset(self, config, split):
        return photos(split)

    def transform(self, sample, training):
        return {**sample, "image": to_float(augment(sample["image"]) if training else sample["image"])}

    def forward(self, model, batch):
        scores = model(batch["image"])
        sums = {"nll": F.cross_entropy(scores, batch["label"], reduction="sum")}
        if not model.training:
            sums["accuracy"] = (scores.argmax(1) == batch["label"]).sum()
        return sums
