"""Images a second from a folder of JPEGs: hetseq's processes beside torch's DataLoader with as many, in turns.

    build/python/bin/python jobs/compare/images.py [--images 1000] [--workers 2] [--turns 3]

Both decode the same files, draw a crop of 128 x 128 and a flip (torchvision.transforms.v2), and train a model that takes next
to no time. docs/performance.md has the numbers.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]

TASK = """
import torch, hetseq
from torch import nn
from torch.nn import functional as F
from torchvision.transforms import v2

augment = v2.Compose([v2.RandomResizedCrop(128, antialias=True), v2.RandomHorizontalFlip()])

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


def write_images(folder, count):
    import numpy
    from PIL import Image
    draw = numpy.random.default_rng(1)
    for number in range(count):
        path = folder / f"class{number % 10}" / f"{number:05}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        coarse = draw.integers(0, 256, (12, 16, 3), dtype=numpy.uint8)
        Image.fromarray(coarse).resize((500, 375), Image.BICUBIC).save(path, quality=90)


def by_data_loader(folder, workers, batch):
    import torch
    from torch.nn import functional as F
    from torchvision.datasets import ImageFolder
    from torchvision.io import ImageReadMode, decode_image
    import task
    torch.set_num_threads(1)
    data = ImageFolder(folder, task.augment, loader=lambda path: decode_image(path, ImageReadMode.RGB))
    loader = torch.utils.data.DataLoader(data, batch, shuffle=True, num_workers=workers, persistent_workers=True)
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
    return 2 * len(data) / sum(times[1:])


def by_hetseq(folder, workers, batch):
    words = [sys.executable, "-m", "hetseq", "train", "task.py:Photos", "--data", "shards", "--optimizer", "sgd", "--threads", "1",
             "--batch-size", batch, "--max-sentences", batch, "--max-epoch", 3, "--data-workers", workers, "--device", "cpu",
             "--save-dir", "run", "--overwrite", "--save-minutes", 0]
    environment = dict(os.environ, PYTHONPATH=str(ROOT / "python"), OMP_NUM_THREADS="1", OMPI_ALLOW_RUN_AS_ROOT="1",
                       OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    subprocess.run(list(map(str, words)), check=True, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
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
        pathlib.Path("task.py").write_text(TASK)
        write_images(pathlib.Path("photos"), given.images)
        import hetseq
        hetseq.from_images("photos", "shards")
        rates = {by_data_loader: [], by_hetseq: []}
        for _ in range(given.turns):
            for run, found in rates.items():
                found.append(run("photos", given.workers, given.batch))
        for run, found in rates.items():
            print(f"{run.__name__}: median {statistics.median(found):.0f} images/s ({min(found):.0f} to {max(found):.0f})")
        print(f"hetseq / DataLoader: {statistics.median(rates[by_hetseq]) / statistics.median(rates[by_data_loader]):.2f}")


if __name__ == "__main__":
    main()
