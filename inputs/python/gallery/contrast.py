"""Contrastive learning (Chen et al. 2020, "SimCLR"): two views of an image find each other among those of their group.
On Fashion-MNIST, which jobs/quickstart.sh prepares:

    mpirun -np 2 python -m hetseq train inputs/python/gallery/contrast.py:Contrast --data 'data/fashion-mnist/train*.h5' \
        --valid-data 'data/fashion-mnist/t10k*.h5' --norm-group 64 --save-dir runs/contrast
"""
import torch
from torch import nn
from torch.nn import functional as F

import hetseq


class Encoder(nn.Module):
    def __init__(self, width, dropout):
        super().__init__()
        self.convolutions = nn.Sequential(
            nn.Conv2d(1, width, 3, stride=2), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, stride=2), nn.BatchNorm2d(2 * width), nn.ReLU(), nn.AdaptiveAvgPool2d(1))
        self.projection = nn.Sequential(nn.Flatten(), nn.Dropout(dropout), nn.Linear(2 * width, 64))

    def view(self, x):
        """Shifted by up to 4 pixels, brighter or darker, and with noise: other for each sample, update and call."""
        corners = torch.randint(0, 9, (len(x), 2), device=x.device)
        padded, rows = F.pad(x[:, 0], (4, 4, 4, 4)), torch.arange(28, device=x.device)
        places = torch.arange(len(x), device=x.device)[:, None, None]
        x = padded[places, (corners[:, :1] + rows)[:, :, None], (corners[:, 1:] + rows)[:, None]]
        return (x * torch.rand(len(x), 1, 1, device=x.device, dtype=x.dtype).add(0.5) + 0.1 * torch.randn_like(x))[:, None]

    def forward(self, x):
        return F.normalize(self.projection(self.convolutions(self.view(x))))


class Contrast(hetseq.Task):
    fields = {"images": hetseq.Field(torch.uint8, (28, 28))}
    losses, metrics, groups = ["contrast"], ["accuracy"], True
    defaults = {"optimizer": "adamw", "lr": 1e-3, "batch-size": 256, "max-sentences": 128, "max-epoch": 5, "log-interval": 50}

    def model(self, config):
        return Encoder(32, 0.1 if config.dropout is None else config.dropout)

    def forward(self, model, batch):
        x = batch["images"].unsqueeze(1).float() / 255
        one, other = model(x), model(x)
        sums = {"contrast": 0, "accuracy": 0}
        for part in hetseq.groups(batch):
            scores = one[part] @ other[part].T / 0.1
            truth = torch.arange(len(scores), device=x.device)
            for way in (scores, scores.T):
                sums["contrast"] = sums["contrast"] + F.cross_entropy(way, truth, reduction="sum") / 2
            sums["accuracy"] = sums["accuracy"] + (scores.argmax(1) == truth).sum()
        return sums if not model.training else {"contrast": sums["contrast"]}
