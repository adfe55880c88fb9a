"""HetPipe's models (Park et al. 2020), ResNet-152 and VGG-19 of torchvision, as tasks whose blocks are a chain
(hetpipe_models.sh). As a program:

    hetpipe_tasks.py data FOLDER SIZE            writes images-*.h5, random images of SIZE x SIZE with random labels
    hetpipe_tasks.py difference A B [LIMIT]      compares two runs' parameters and running statistics
"""
import pathlib
import sys

import torch
import torchvision
from torch.nn import functional as F

import hetseq

CLASSES, IMAGES = 10, 160


class Images(hetseq.Task):
    fields = {"image": hetseq.Field(torch.float32, (3, None, None)), "label": hetseq.Field(torch.int64)}
    losses = ["nll"]
    self_test = False  # as long as several updates, and the same in each run

    def forward(self, model, batch):
        images = batch["image"].to(next(model.parameters()).dtype)  # fp64 with --precision fp64
        return F.cross_entropy(model(images), batch["label"], reduction="sum")


class ResNet152(Images):
    chain = ["layer1", "layer2", "layer3", "layer4"]
    network = "resnet152"
    zero_init_residual = False

    def model(self, config):
        return torchvision.models.get_model(self.network, num_classes=CLASSES, zero_init_residual=self.zero_init_residual)


class ResNet152ZeroInit(ResNet152):
    """The last batch normalisation of each block begins with 0 (Goyal et al. 2017)."""

    zero_init_residual = True


class ResNet50ZeroInit(ResNet152ZeroInit):
    network = "resnet50"


class EfficientNet(Images):
    chain = "features"

    def model(self, config):
        return torchvision.models.efficientnet_b0(num_classes=CLASSES)


class Vgg19(Images):
    chain = ["features", "classifier"]

    def model(self, config):
        return torchvision.models.vgg19(num_classes=CLASSES)


class Vgg19Bn(Vgg19):
    def model(self, config):
        return torchvision.models.vgg19_bn(num_classes=CLASSES)


def write_data(folder, size):
    draw = torch.Generator().manual_seed(5)
    rows = ({"image": torch.randn(3, int(size), int(size), generator=draw).numpy(),
             "label": int(torch.randint(0, CLASSES, (), generator=draw))} for _ in range(IMAGES))
    hetseq.write_shards(rows, folder, name="images")


def difference(a, b, names):
    """The largest of these tensors, relative to max(1, |a|)."""
    return max((((a[name].double() - b[name].double()).abs() / a[name].double().abs().clamp(min=1)).max().item()
                for name in names), default=0.0)


def print_difference(one, other, limit="inf"):
    """Of parameters, and behind a slash of running statistics; fails where one is above the limit."""
    from hetseq.models import read_tensors

    first, second = (pathlib.Path(run, "model.safetensors") for run in (one, other))
    a, b = read_tensors(first), read_tensors(second)
    if a.keys() != b.keys():
        sys.exit(f"{first} and {second} have other tensors")
    if first.read_bytes() == second.read_bytes():
        print("same bytes")
        return
    statistics = [name for name in a if name.endswith(("running_mean", "running_var", "num_batches_tracked"))]
    found = [difference(a, b, [name for name in a if name not in statistics])]
    if statistics:
        found.append(difference(a, b, statistics))
    print(" / ".join(f"{value:.1e}" for value in found))
    if not all(value <= float(limit) for value in found):
        sys.exit(f"{first} and {second} differ by more than the {limit} that is allowed")


if __name__ == "__main__":
    {"data": write_data, "difference": print_difference}[sys.argv[1]](*sys.argv[2:])
