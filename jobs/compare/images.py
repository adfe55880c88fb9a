"""Images a second from a folder of JPEGs: hetseq's processes beside torch's DataLoader with as many, in turns.

    build/python/bin/python jobs/compare/images.py [--images 1000] [--workers 2] [--turns 3]

Both decode the same files, draw a crop and a flip (torchvision.transforms.v2), and train a model that takes next to no time:
once with images of 128 x 128 as bytes, once with 224 x 224 as normalised fp32, as ImageNet's recipes have them.
docs/performance.md has the numbers.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]

TASK = """
import torch, hetseq
from torch import nn
from torch.nn import functional as F
from torchvision.transforms import v2

augment = v2.Compose([AUGMENT])

def network():
    return nn.Sequential(nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(12, 10))

class Photos(hetseq.Task):
    fields = {"image": hetseq.Bytes(), "label": hetseq.Field(torch.int64)}
    def model(self, config):
        return network()
    def transform(self, sample, training):
        return {"image": augment(hetseq.decode_image(sample["image"])), "label": sample["label"]}
    def forward(self, model, batch):
        return F.cross_entropy(model(batch["image"].float() / 255), batch["label"], reduction="sum")
"""


CROPS = {
    "128 x 128, uint8": "v2.RandomResizedCrop(128, antialias=True), v2.RandomHorizontalFlip()",
    "224 x 224, fp32": "v2.RandomResizedCrop(224, antialias=True), v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32, scale=True), "
                       "v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])",
}


def write_images(folder, count):
    import numpy
    from PIL import Image
    draw = numpy.random.default_rng(1)
    for number in range(count):
        path = folder / f"class{number % 10}" / f"{number:05}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        coarse = draw.integers(0, 256, (12, 16, 3), dtype=numpy.uint8)
        Image.fromarray(coarse).resize((500, 375), Image.BICUBIC).save(path, quality=90)


LOADER = """
import time, torch
from torch.nn import functional as F
from torchvision.datasets import ImageFolder
from torchvision.io import ImageReadMode, decode_image
import task

torch.set_num_threads(1)
data = ImageFolder("photos", task.augment, loader=lambda path: decode_image(path, ImageReadMode.RGB))
loader = torch.utils.data.DataLoader(data, {batch}, shuffle=True, num_workers={workers}, persistent_workers=True)
model = task.network()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
times = []
for _ in range(3):  # the first epoch starts the processes
    begin = time.perf_counter()
    for images, labels in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(images.float() / 255), labels).backward()
        optimizer.step()
    times.append(time.perf_counter() - begin)
print(2 * len(data) / sum(times[1:]))
"""


def environment():
    return dict(os.environ, PYTHONPATH=str(ROOT / "python"), OMP_NUM_THREADS="1", OMPI_ALLOW_RUN_AS_ROOT="1",
                OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")


def by_data_loader(workers, batch):
    script = LOADER.format(workers=workers, batch=batch)
    run = subprocess.run([sys.executable, "-c", script], check=True, env=environment(), stdout=subprocess.PIPE, text=True)
    return float(run.stdout)


def by_hetseq(workers, batch):
    words = [sys.executable, "-m", "hetseq", "train", "task.py:Photos", "--data", "shards", "--optimizer", "sgd", "--threads", "1",
             "--batch-size", batch, "--max-sentences", batch, "--max-epoch", 3, "--data-workers", workers, "--device", "cpu",
             "--save-dir", "run", "--overwrite", "--save-minutes", 0]
    subprocess.run(list(map(str, words)), check=True, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return json.loads(pathlib.Path("run/summary.json").read_text())["samples_per_second"]


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--images", type=int, default=1000)
    options.add_argument("--workers", type=int, default=2)
    options.add_argument("--turns", type=int, default=3)
    options.add_argument("--batch", type=int, default=64)
    given = options.parse_args()
    sys.path[:0] = [str(ROOT / "python"), ""]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        write_images(pathlib.Path("photos"), given.images)
        import hetseq
        hetseq.from_images("photos", "shards")
        for crop, augment in CROPS.items():
            pathlib.Path("task.py").write_text(TASK.replace("AUGMENT", augment))
            compare(crop, given)


def compare(crop, given):
    rates = {by_data_loader: [], by_hetseq: []}
    for _ in range(given.turns):
        for run, found in rates.items():
            found.append(run(given.workers, given.batch))
    for run, found in rates.items():
        print(f"{crop}, {run.__name__}: median {statistics.median(found):.0f} images/s ({min(found):.0f} to {max(found):.0f})")
    ratios = [ours / theirs for theirs, ours in zip(*rates.values())]
    print(f"{crop}: hetseq / DataLoader, median {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})", flush=True)


if __name__ == "__main__":
    main()
