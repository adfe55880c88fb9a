"""inputs/python/gallery/vae.py with accelerate: accelerate launch vae.py SAVE_DIR"""
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
from vae import Autoencoder  # noqa: E402

BATCH, EPOCHS, WIDTH, CODES = 128, 10, 400, 20
folder = sys.argv[1]
accelerator = Accelerator()
set_seed(1, device_specific=True)
pixels = v2.Compose([v2.PILToTensor(), v2.ToDtype(torch.float32, scale=True)])
data, valid_data = (datasets.FashionMNIST("data", train, pixels) for train in (True, False))
train = DataLoader(data, BATCH // accelerator.num_processes, shuffle=True, drop_last=True)
valid = DataLoader(valid_data, BATCH)
model = Autoencoder(WIDTH, CODES, 0.0)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0)
train, valid, model, optimizer = accelerator.prepare(train, valid, model, optimizer)


def losses(images):
    x = images.flatten(1)
    logits, mean, log_variance = model(x)
    divergence = 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum(1)
    return F.binary_cross_entropy_with_logits(logits, x, reduction="none").sum(1), divergence


first_epoch = 0
if os.path.exists(f"{folder}/epoch"):
    accelerator.load_state(folder)
    with open(f"{folder}/epoch") as file:
        first_epoch = int(file.read())
for epoch in range(first_epoch, EPOCHS):
    model.train()
    for images, _ in train:
        accelerator.backward(sum(losses(images)).mean())
        optimizer.step()
        optimizer.zero_grad()
    model.eval()
    sums = torch.zeros(2)
    with torch.no_grad():
        for images, _ in valid:
            found = accelerator.gather_for_metrics(torch.stack(losses(images), 1))
            sums += found.sum(0).cpu()
    accelerator.print(epoch + 1, (sums / len(valid_data)).tolist())
    accelerator.save_state(folder)
    if accelerator.is_main_process:
        with open(f"{folder}/epoch", "w") as file:
            file.write(str(epoch + 1))
accelerator.end_training()
