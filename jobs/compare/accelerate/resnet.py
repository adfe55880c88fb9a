"""inputs/python/gallery/resnet.py with accelerate: accelerate launch resnet.py SAVE_DIR"""
import os
import sys

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.nn import functional as F
from torch.utils.data import DataLoader
from torchvision import datasets
from torchvision.transforms import v2
from transformers import ResNetConfig, ResNetForImageClassification

BATCH, EPOCHS, WIDTH, PARTS = 256, 10, int(os.environ.get("WIDTH", 64)), 2
folder = sys.argv[1]
accelerator = Accelerator(gradient_accumulation_steps=PARTS)
set_seed(1, device_specific=True)
pixels = v2.Compose([v2.PILToTensor(), v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5], [1.0])])
data, valid_data = (datasets.FashionMNIST("data", train, pixels) for train in (True, False))
train = DataLoader(data, BATCH // accelerator.num_processes // PARTS, shuffle=True, drop_last=True)
valid = DataLoader(valid_data, BATCH)
model = ResNetForImageClassification(ResNetConfig(
    num_channels=1, embedding_size=WIDTH, hidden_sizes=[WIDTH, 2 * WIDTH, 4 * WIDTH, 8 * WIDTH],
    depths=[2, 2, 2, 2], layer_type="basic", num_labels=10))
embedder = model.resnet.embedder  # small images keep their size at the beginning
embedder.embedder.convolution = torch.nn.Conv2d(1, WIDTH, 3, padding=1, bias=False)
embedder.pooler = torch.nn.Identity()
model = torch.nn.SyncBatchNorm.convert_sync_batchnorm(model) if torch.cuda.is_available() else model
decayed, others = ([p for p in model.parameters() if (p.dim() > 1) == is_decayed] for is_decayed in (True, False))
groups = [{"params": decayed, "weight_decay": 5e-4}, {"params": others, "weight_decay": 0}]
optimizer = torch.optim.SGD(groups, lr=0.05, momentum=0.9)
updates = EPOCHS * (len(data) // BATCH)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, updates * accelerator.num_processes)
train, valid, model, optimizer, schedule = accelerator.prepare(train, valid, model, optimizer, schedule)
first_epoch = 0
if os.path.exists(f"{folder}/epoch"):
    accelerator.load_state(folder)
    with open(f"{folder}/epoch") as file:
        first_epoch = int(file.read())
for epoch in range(first_epoch, EPOCHS):
    model.train()
    for images, labels in train:
        with accelerator.accumulate(model):
            accelerator.backward(F.cross_entropy(model(pixel_values=images).logits, labels))
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
    model.eval()
    sums = torch.zeros(2)
    with torch.no_grad():
        for images, labels in valid:
            logits, labels = accelerator.gather_for_metrics((model(pixel_values=images).logits, labels))
            loss = F.cross_entropy(logits, labels, reduction="sum")
            sums += torch.stack([loss, (logits.argmax(1) == labels).sum()]).cpu()
    accelerator.print(epoch + 1, (sums / len(valid_data)).tolist())
    accelerator.save_state(folder)
    if accelerator.is_main_process:
        with open(f"{folder}/epoch", "w") as file:
            file.write(str(epoch + 1))
accelerator.end_training()
