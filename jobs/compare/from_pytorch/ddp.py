import contextlib
import os

import torch
import torch.distributed as dist
from images import augment, network, photos, to_float
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler
from torchvision.transforms import v2

PARTS = 2  # micro-batches of an update
dist.init_process_group()
torch.manual_seed(1 + dist.get_rank())
device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if torch.cuda.is_available() else torch.device("cpu")
data, valid_data = photos("train", v2.Compose([augment, to_float])), photos("valid", to_float)
sampler = DistributedSampler(data, drop_last=True)
train = DataLoader(data, 64 // dist.get_world_size() // PARTS, sampler=sampler, num_workers=2, drop_last=True)
valid = DataLoader(valid_data, 64, sampler=range(dist.get_rank(), len(valid_data), dist.get_world_size()))
model = DistributedDataParallel(network().to(device))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
first_epoch = 0
if os.path.exists("checkpoint.pt"):
    state = torch.load("checkpoint.pt", map_location=device)
    model.module.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    first_epoch = state["epoch"]
for epoch in range(first_epoch, 3):
    sampler.set_epoch(epoch)
    model.train()
    for i, (images, labels) in enumerate(train):
        is_last = i % PARTS == PARTS - 1
        with contextlib.nullcontext() if is_last else model.no_sync():
            (F.cross_entropy(model(images.to(device)), labels.to(device)) / PARTS).backward()
        if is_last:
            optimizer.step()
            optimizer.zero_grad()
    model.eval()
    right = torch.zeros((), device=device)
    with torch.no_grad():
        for images, labels in valid:
            right += (model.module(images.to(device)).argmax(1) == labels.to(device)).sum()
    dist.all_reduce(right)
    if dist.get_rank() == 0:
        print(epoch + 1, right.item() / len(valid_data))
        state = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch + 1}
        torch.save(state, "checkpoint.tmp")
        os.replace("checkpoint.tmp", "checkpoint.pt")
dist.destroy_process_group()
