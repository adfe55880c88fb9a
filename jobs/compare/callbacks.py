#!/usr/bin/env python3
"""What a callback of each update costs: runs with and without one, which take turns in one process, on one rank.

callbacks.py --width 640 --updates 200 --rounds 7
"""
import argparse
import json
import pathlib
import statistics
import tempfile

import h5py
import numpy as np
import torch

import hetseq


class Layers(hetseq.Task):
    fields = {"x": hetseq.Field(torch.float32, (256,)), "y": hetseq.Field(torch.int64)}
    losses = ["nll"]
    self_test = False
    width = 640

    def model(self, config):
        layers = [torch.nn.Linear(256, self.width), torch.nn.ReLU()]
        for _ in range(4):
            layers += [torch.nn.Linear(self.width, self.width), torch.nn.ReLU()]
        return torch.nn.Sequential(*layers, torch.nn.Linear(self.width, 10))

    def forward(self, model, batch):
        return torch.nn.functional.cross_entropy(model(batch["x"]), batch["y"], reduction="sum")


class Notes:
    """As a logger does it: a few numbers of each update."""

    def __init__(self):
        self.losses = []

    def on_update(self, info):
        self.losses.append((info["update"], info["loss"], info["lr"], info["samples_per_second"]))


def update_ms(folder, name, updates, callbacks):
    """The median update of a run."""
    run = folder / name
    hetseq.train(Layers(), callbacks=callbacks, data=str(folder / "data.h5"), batch_size=64, max_sentences=64, lr=0.01,
                 optimizer="sgd", max_update=updates, balance="declared", threads=1, save_dir=str(run), overwrite=True)
    return json.loads((run / "summary.json").read_text())["step_ms"]["median"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("width", 640), ("updates", 200), ("rounds", 7)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    Layers.width = options.width
    torch.set_num_threads(1)
    draw = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        with h5py.File(folder / "data.h5", "w") as file:
            file["x"] = draw.normal(size=(4096, 256)).astype(np.float32)
            file["y"] = draw.integers(0, 10, 4096)
        without, with_one = [], []
        for turn in range(options.rounds):
            for callbacks in ([], [Notes()]) if turn % 2 == 0 else ([Notes()], []):
                (with_one if callbacks else without).append(update_ms(folder, "run", options.updates, callbacks))
                assert not callbacks or len(callbacks[0].losses) == options.updates
        ratios = [slower / faster for slower, faster in zip(with_one, without)]
        print(f"update [ms], medians of {options.rounds} turns: {statistics.median(without):.2f} without, "
              f"{statistics.median(with_one):.2f} with a callback; ratio {statistics.median(ratios):.4f} "
              f"({min(ratios):.4f} to {max(ratios):.4f})")


if __name__ == "__main__":
    main()
