"""The data and the model that the four scripts beside this one share (docs/python.md)."""
import torch
from torch import nn
from torchvision import datasets
from torchvision.transforms import v2

augment = v2.Compose([v2.RandomHorizontalFlip(), v2.RandomCrop(32, padding=4)])
to_float = v2.ToDtype(torch.float32, scale=True)


def photos(split, transform=None):
    """Folders of 32 x 32 pixels by class, photos/train/CLASS/*.png."""
    first = [v2.PILToTensor()]
    return datasets.ImageFolder(f"photos/{split}", v2.Compose(first + ([transform] if transform else [])))


def network():
    return nn.Sequential(nn.Conv2d(3, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.2),
                         nn.Linear(32 * 15 * 15, 10))
