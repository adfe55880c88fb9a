import torch
from images import augment, network, photos, to_float
from torch.nn import functional as F
from torch.utils.data import DataLoader
from torchvision.transforms import v2

torch.manual_seed(1)
device = "cuda" if torch.cuda.is_available() else "cpu"
train = DataLoader(photos("train", v2.Compose([augment, to_float])), 64, shuffle=True, num_workers=2)
valid = DataLoader(photos("valid", to_float), 64)
model = network().to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for epoch in range(3):
    model.train()
    for images, labels in train:
        loss = F.cross_entropy(model(images.to(device)), labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    right = 0
    with torch.no_grad():
        for images, labels in valid:
            right += (model(images.to(device)).argmax(1) == labels.to(device)).sum().item()
    print(epoch + 1, right / len(valid.dataset))
torch.save(model.state_dict(), "model.pt")
