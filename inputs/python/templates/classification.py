"""Classes of images, learned from random numbers until you put your own data and model in their places.

    mpirun -np 2 hetseq train my_task.py --valid-data valid --save-dir run
    hetseq evaluate run --data test
    hetseq predict run --data test --output predictions.h5

The first line again goes on where the run stopped, on as many ranks as you like. Other options: hetseq train --help.
In Python, hetseq.load("run") gives the trained module.
"""
import torch
from torch import nn
from torch.nn import functional as F

import hetseq

CLASSES, SIDE = 4, 16


class Images(torch.utils.data.Dataset):
    """Put your dataset in its place: anything with len(dataset) and dataset[i]."""

    def __init__(self, count, seed):
        self.count, self.seed = count, seed

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        if i >= self.count:
            raise IndexError(i)
        generator = torch.Generator().manual_seed(self.seed + i)  # a sample is always the same
        image = torch.randint(0, 200, (3, SIDE, SIDE), dtype=torch.uint8, generator=generator)
        label, rows = i % CLASSES, SIDE // CLASSES
        image[:, label * rows:(label + 1) * rows] += 40  # the brighter rows tell the class
        return image, label


class MyTask(hetseq.Task):
    # What a sample holds, in the dataset's order. `is_target`: data for predictions may lack it.
    fields = {"image": hetseq.Field(torch.uint8, (3, SIDE, SIDE)),
              "label": hetseq.Field(torch.int64, minimum=0, maximum=CLASSES - 1, meaning="classes", is_target=True)}
    losses, metrics = ["nll"], ["accuracy"]
    # Options of your own: --width 32 on the command line, config.width in `model`.
    options = {"width": hetseq.Option(16, "channels of the first convolution")}
    # Other values than hetseq's own for its options; the command line wins.
    defaults = {"optimizer": "adamw", "lr": 3e-3, "batch-size": 64, "max-sentences": 64, "max-epoch": 3, "log-interval": 20}

    def model(self, config):
        width, dropout = config.width, 0.1 if config.dropout is None else config.dropout
        return nn.Sequential(nn.Conv2d(3, width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                             nn.Conv2d(width, 2 * width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                             nn.Flatten(), nn.Dropout(dropout), nn.Linear(2 * width * (SIDE // 4) ** 2, CLASSES))

    def dataset(self, config, split):
        """`split` is what --data names (train by default), --valid-data, or --data of evaluate and predict."""
        seeds = {"train": 0, "valid": 1_000_000, "test": 2_000_000}
        if split not in seeds:
            raise hetseq.TaskError(f"no data are named '{split}': use one of {', '.join(seeds)}")
        return Images(2048 if split == "train" else 256, seeds[split])

    def transform(self, sample, training):
        """One sample's tensors, made in processes beside training. Draw as you like with torch, NumPy or random: what is
        drawn depends on the seed, the epoch and the sample alone."""
        image = sample["image"].float() / 255
        if training and torch.rand(()) < 0.5:
            image = image.flip(-1)
        return {**sample, "image": image}

    def scores(self, model, batch):
        return model(batch["image"].to(model[0].weight.dtype))  # (n, CLASSES)

    def forward(self, model, batch):
        """Sums over the samples of this part of a batch, never means: hetseq divides by the whole batch's samples."""
        scores = self.scores(model, batch)
        sums = {"nll": F.cross_entropy(scores, batch["label"], reduction="sum")}
        if not model.training:
            sums["accuracy"] = (scores.argmax(1) == batch["label"]).sum()
        return sums

    def predict(self, model, batch):
        """What `hetseq predict` writes: a row for each sample, under these names."""
        probabilities = self.scores(model, batch).softmax(1)
        return {"class": probabilities.argmax(1), "probabilities": probabilities}
