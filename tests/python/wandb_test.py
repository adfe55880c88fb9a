"""Runs in Weights & Biases, offline: what its files hold, read with W&B's own records."""

import struct
import unittest

from harness import LINEAR, Case, need

need("torch", "numpy", "h5py", "safetensors")
need("wandb", how="pip install wandb")

import h5py
import numpy as np
from wandb.proto import wandb_internal_pb2

BLOCK = 32768
FULL, FIRST, LAST = 1, 2, 4


def records(path):
    """Those of a .wandb file, which is a log of LevelDB behind seven bytes of its own."""
    data, place, parts = path.read_bytes(), 7, b""
    assert data[:4] == b":W&B", data[:7]
    while place + 7 <= len(data):
        if BLOCK - place % BLOCK < 7:
            place += BLOCK - place % BLOCK
            continue
        _, length, kind = struct.unpack_from("<IHB", data, place)
        parts = (b"" if kind in (FULL, FIRST) else parts) + data[place + 7:place + 7 + length]
        place += 7 + length
        if kind in (FULL, LAST):
            yield wandb_internal_pb2.Record.FromString(parts)


def history(path):
    """Rows of a run by step, each a dict of texts of JSON, and the run's own record."""
    rows, run = {}, None
    for record in records(path):
        if record.HasField("run"):
            run = record.run
        if record.HasField("history"):
            row = {"/".join(item.nested_key) or item.key: item.value_json for item in record.history.item}
            rows.setdefault(int(row["_step"]), {}).update(row)
    return rows, run


class WandbTest(Case):
    def test_a_run_and_its_continuation_are_one_run_offline(self):
        draw = np.random.default_rng(5)
        with h5py.File(self.folder / "data.h5", "w") as file:
            file["x"], file["y"] = draw.normal(size=(24, 5)), draw.normal(size=24)
        self.write("logged.py", LINEAR + """
    import sys

    if __name__ == "__main__":
        logger = hetseq.WandbLogger(project="unlike", mode="offline")
        hetseq.train(Linear(), callbacks=[logger], data="data.h5", valid_data="data.h5", precision="fp64", lr=0.02,
                     batch_size=12, max_update=sys.argv[1], log_interval=2, save_dir="run", balance="declared",
                     max_sentences=6)
        """)
        self.run_ranks(2, "logged.py", 4)
        self.run_ranks(2, "logged.py", 7)
        files = sorted(self.folder.glob("wandb/offline-run-*/*.wandb"), key=lambda path: path.stat().st_mtime)
        self.assertEqual(len(files), 2)
        (first, run), (second, continued) = map(history, files)
        self.assertEqual(run.run_id, (self.folder / "run/wandb-id").read_text().strip())
        self.assertEqual((continued.run_id, continued.project, run.display_name), (run.run_id, "unlike", "run"))
        config = {item.key: item.value_json for item in run.config.update}
        self.assertEqual(float(config["lr"]), 0.02)
        self.assertEqual([step for step in sorted(first) if "train/loss" in first[step]], [2, 4])
        self.assertEqual([step for step in sorted(second) if "train/loss" in second[step]], [6, 7])
        for row in (first[2], second[6]):
            self.assertEqual(float(row["train/lr"]), 0.02)
            self.assertGreater(float(row["train/samples_per_second"]), 0)
        self.assertIn("valid/loss", first[4])
        self.assertIn("valid/loss", second[7])


if __name__ == "__main__":
    unittest.main(verbosity=2)
