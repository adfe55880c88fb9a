"""A diffusion model (Ho, Jain & Abbeel 2020, "Denoising diffusion probabilistic models") of Fashion-MNIST, which
jobs/quickstart.sh prepares:

    mpirun -np 2 python -m hetseq train inputs/python/gallery/diffusion.py:Diffusion --data 'data/fashion-mnist/train*.h5' \
        --valid-data 'data/fashion-mnist/t10k*.h5' --save-dir runs/diffusion
"""
import torch
from torch import nn
from torch.nn import functional as F

import hetseq

STEPS = 1000


class Block(nn.Module):
    def __init__(self, channels, out, dropout):
        super().__init__()
        self.norms = nn.ModuleList([nn.GroupNorm(8, channels), nn.GroupNorm(8, out)])
        self.first, self.second = nn.Conv2d(channels, out, 3, padding=1), nn.Conv2d(out, out, 3, padding=1)
        self.time, self.skip = nn.Linear(64, out), nn.Conv2d(channels, out, 1)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, time):
        h = self.first(F.silu(self.norms[0](x))) + self.time(time)[:, :, None, None]
        return self.skip(x) + self.second(self.dropout(F.silu(self.norms[1](h))))


class UNet(nn.Module):
    def __init__(self, width, dropout):
        super().__init__()
        self.begin, self.end = nn.Conv2d(1, width, 3, padding=1), nn.Conv2d(width, 1, 3, padding=1)
        self.down, self.middle = Block(width, 2 * width, dropout), Block(2 * width, 2 * width, dropout)
        self.up = Block(4 * width, width, dropout)

    def forward(self, x, t):
        angles = t[:, None] * torch.exp(torch.arange(32, device=t.device) * (-9.21 / 32))
        time = torch.cat([angles.sin(), angles.cos()], 1).to(x.dtype)
        wide = self.down(self.begin(x), time)
        low = self.middle(F.avg_pool2d(wide, 2), time)
        return self.end(self.up(torch.cat([wide, F.interpolate(low, scale_factor=2)], 1), time))


class Diffusion(hetseq.Task):
    fields = {"images": hetseq.Field(torch.uint8, (28, 28))}
    losses = ["noise"]
    defaults = {"optimizer": "adamw", "lr": 2e-4, "batch-size": 128, "max-sentences": 64, "max-epoch": 5, "log-interval": 100}

    def model(self, config):
        self.kept = torch.cumprod(1 - torch.linspace(1e-4, 0.02, STEPS), 0)
        return UNet(32, 0.1 if config.dropout is None else config.dropout)

    def forward(self, model, batch):
        x = batch["images"].unsqueeze(1).float() / 127.5 - 1
        t = torch.randint(0, STEPS, (len(x),), device=x.device)
        kept = self.kept.to(x.device, x.dtype)[t].view(-1, 1, 1, 1)
        noise = torch.randn_like(x)
        noisy = kept.sqrt() * x + (1 - kept).sqrt() * noise
        return {"noise": F.mse_loss(model(noisy, t), noise, reduction="sum") / x[0].numel()}
