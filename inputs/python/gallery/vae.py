"""A variational autoencoder (Kingma & Welling 2014) of Fashion-MNIST, which jobs/quickstart.sh prepares:

    mpirun -np 2 python -m hetseq train inputs/python/gallery/vae.py:Vae --data 'data/fashion-mnist/train*.h5' \
        --valid-data 'data/fashion-mnist/t10k*.h5' --save-dir runs/vae
"""
import torch
from torch import nn
from torch.nn import functional as F

import hetseq


class Autoencoder(nn.Module):
    def __init__(self, width, codes, dropout):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(784, width), nn.GELU(), nn.Dropout(dropout), nn.Linear(width, 2 * codes))
        self.decoder = nn.Sequential(nn.Linear(codes, width), nn.GELU(), nn.Dropout(dropout), nn.Linear(width, 784))

    def forward(self, x):
        mean, log_variance = self.encoder(x).chunk(2, -1)
        code = mean + torch.exp(log_variance / 2) * torch.randn_like(mean)
        return self.decoder(code), mean, log_variance


class Vae(hetseq.Task):
    fields = {"images": hetseq.Field(torch.uint8, (28, 28))}
    losses = ["reconstruction", "divergence"]
    options = {"width": hetseq.Option(400, "of the hidden layers"), "codes": hetseq.Option(20, "dimensions of a code")}
    defaults = {"optimizer": "adamw", "lr": 1e-3, "batch-size": 128, "max-sentences": 128, "max-epoch": 10, "log-interval": 200}

    def model(self, config):
        return Autoencoder(config.width, config.codes, 0.0 if config.dropout is None else config.dropout)

    def pixels(self, batch):
        return batch["images"].flatten(1).float() / 255

    def forward(self, model, batch):
        x = self.pixels(batch)
        logits, mean, log_variance = model(x)
        divergence = 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum()
        return {"reconstruction": F.binary_cross_entropy_with_logits(logits, x, reduction="sum"), "divergence": divergence}

    def predict(self, model, batch):
        return {"codes": model.encoder(self.pixels(batch)).chunk(2, -1)[0]}
