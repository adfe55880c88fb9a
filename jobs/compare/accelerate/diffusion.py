"""inputs/python/gallery/diffusion.py with accelerate: accelerate launch diffusion.py SAVE_DIR"""
import os
import sys

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.nn import functional as F
from torch.utils.data import DataLoader
from torchvision import datasets
from torchvision.transforms import v2

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../../inputs/python/gallery"))
from diffusion import STEPS, UNet  # noqa: E402

BATCH, EPOCHS = 128, 5
folder = sys.argv[1]
accelerator = Accelerator()
set_seed(1, device_specific=True)
pixels = v2.Compose([v2.PILToTensor(), v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5], [0.5])])
data, valid_data = (datasets.FashionMNIST("data", train, pixels) for train in (True, False))
train = DataLoader(data, BATCH // accelerator.num_processes, shuffle=True, drop_last=True)
valid = DataLoader(valid_data, BATCH // accelerator.num_processes)
model = UNet(32, 0.1)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4, weight_decay=0)
train, valid, model, optimizer = accelerator.prepare(train, valid, model, optimizer)
kept_at = torch.cumprod(1 - torch.linspace(1e-4, 0.02, STEPS), 0).to(accelerator.device)


def losses(x):
    t = torch.randint(0, STEPS, (len(x),), device=x.device)
    kept = kept_at[t].view(-1, 1, 1, 1)
    noise = torch.randn_like(x)
    noisy = kept.sqrt() * x + (1 - kept).sqrt() * noise
    return F.mse_loss(model(noisy, t), noise, reduction="none").mean((1, 2, 3))


first_epoch = 0
if os.path.exists(f"{folder}/epoch"):
    accelerator.load_state(folder)
    with open(f"{folder}/epoch") as file:
        first_epoch = int(file.read())
for epoch in range(first_epoch, EPOCHS):
    model.train()
    for images, _ in train:
        accelerator.backward(losses(images).mean())
        optimizer.step()
        optimizer.zero_grad()
    model.eval()
    total = 0
    with torch.no_grad():
        for images, _ in valid:
            total += accelerator.gather_for_metrics(losses(images)).sum().item()
    accelerator.print(epoch + 1, total / len(valid_data))
    accelerator.save_state(folder)
    if accelerator.is_main_process:
        with open(f"{folder}/epoch", "w") as file:
            file.write(str(epoch + 1))
accelerator.end_training()
