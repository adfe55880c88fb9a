"""A small convolutional network for a folder of images, one folder a class, as it comes:

    python -c 'from hetseq import from_images; from_images("photos/train", "data/photos")'
    python -c 'from hetseq import from_images; from_images("photos/valid", "data/photos", name="valid")'
    mpirun -np 2 python -m hetseq train image_folder.py:Photos --classes 10 --data 'data/photos/train*.h5' \
        --valid-data 'data/photos/valid*.h5' --save-dir RUN
"""
import torch
from torch import nn
from torch.nn import functional as F

import hetseq


def block(channels, out):
    return nn.Sequential(nn.Conv2d(channels, out, 3, padding=1), nn.GroupNorm(4, out), nn.ReLU(), nn.MaxPool2d(2))


class Photos(hetseq.Task):
    fields = {"image": hetseq.Bytes(), "label": hetseq.Field(torch.int64, minimum=0, is_target=True)}
    losses, metrics = ["nll"], ["accuracy"]
    options = {"classes": hetseq.Option(10, "folders of images"), "width": hetseq.Option(32, "channels of the first block"),
               "side": hetseq.Option(64, "of the squares that images become [pixels]")}
    defaults = {"batch_size": 64, "max_sentences": 32, "max_epoch": 10, "optimizer": "adamw", "lr": 1e-3}

    def model(self, config):
        width = config.width
        return nn.Sequential(block(3, width), block(width, 2 * width), block(2 * width, 4 * width), nn.AdaptiveAvgPool2d(1),
                             nn.Flatten(), nn.Dropout(0.2), nn.Linear(4 * width, config.classes))

    def square(self, encoded):
        """The middle of an image, (3, side, side) uint8."""
        image, side = hetseq.decode_image(encoded), self.choices.side
        edge = min(image.shape[1:])
        top, left = ((length - edge) // 2 for length in image.shape[1:])
        image = image[None, :, top:top + edge, left:left + edge].float()
        return F.interpolate(image, (side, side), mode="bilinear", antialias=True)[0].round().to(torch.uint8)

    def transform(self, sample, training):
        image = self.square(sample["image"])
        if training and torch.rand(()) < 0.5:
            image = image.flip(-1)
        return {**sample, "image": image}

    def scores(self, model, batch):
        return model(batch["image"].to(model[-1].weight.dtype) / 127.5 - 1)

    def forward(self, model, batch):
        scores = self.scores(model, batch)
        sums = {"nll": F.cross_entropy(scores, batch["label"], reduction="sum")}
        if not model.training:
            sums["accuracy"] = (scores.argmax(1) == batch["label"]).sum()
        return sums

    def predict(self, model, batch):
        return {"classes": self.scores(model, batch).argmax(1)}
