import os

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from images import augment, network, photos, to_float
from torch.nn import functional as F
from torch.utils.data import DataLoader
from torchvision.transforms import v2

PARTS = 2  # micro-batches of an update
accelerator = Accelerator(gradient_accumulation_steps=PARTS)
set_seed(1, device_specific=True)
size = 64 // accelerator.num_processes // PARTS
train = DataLoader(photos("train", v2.Compose([augment, to_float])), size, shuffle=True, num_workers=2, drop_last=True)
valid = DataLoader(photos("valid", to_float), 64)
model = network()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
train, valid, model, optimizer = accelerator.prepare(train, valid, model, optimizer)
first_epoch = 0
if os.path.exists("checkpoint"):
    accelerator.load_state("checkpoint")
    with open("checkpoint/epoch") as file:
        first_epoch = int(file.read())
for epoch in range(first_epoch, 3):
    model.train()
    for images, labels in train:
        with accelerator.accumulate(model):
            accelerator.backward(F.cross_entropy(model(images), labels))
            optimizer.step()
            optimizer.zero_grad()
    model.eval()
    right = 0
    with torch.no_grad():
        for images, labels in valid:
            scores, labels = accelerator.gather_for_metrics((model(images), labels))
            right += (scores.argmax(1) == labels).sum().item()
    accelerator.print(epoch + 1, right / len(valid.dataset))
    accelerator.save_state("checkpoint")
    if accelerator.is_main_process:
        with open("checkpoint/epoch", "w") as file:
            file.write(str(epoch + 1))
accelerator.end_training()
