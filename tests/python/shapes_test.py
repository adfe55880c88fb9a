"""Fields whose rows have several dimensions, and fields of bytes: what a batch has, that the cut does not matter, what is
refused."""

import io
import unittest

from harness import Case, capacities, largest_difference, need

need("torch", "numpy", "h5py", "safetensors", "PIL")

import h5py
import numpy as np
import torch
from PIL import Image
from torch import nn

import hetseq
from hetseq import TaskError
from hetseq.samples import Samples
from hetseq.task import describe

SAMPLES = 96

TASKS = """
    import torch, hetseq
    from torch import nn
    from torch.nn import functional as F

    def reach(sizes, largest):
        return torch.arange(largest, device=sizes.device) < sizes[:, None]

    class Sound(hetseq.Task):
        fields = {"sound": hetseq.Ragged(torch.float32, (None, 8)), "tone": hetseq.Ragged(torch.int64, same_lengths_as="sound")}
        losses, weights, tokens = ["nll"], hetseq.tokens("sound"), "sound"
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.convolution, self.dropout, self.output = nn.Conv1d(8, 16, 3, padding=1), nn.Dropout(0.1), nn.Linear(16, 3)
            def forward(self, x, mask):
                x = self.convolution((x * mask[..., None]).transpose(1, 2))
                return self.output(self.dropout(torch.relu(x)).transpose(1, 2))
        def model(self, config):
            return self.Model()
        def forward(self, model, batch):
            x, lengths = batch["sound"], batch["sound_lengths"]
            assert x.shape[1] >= lengths.max() and x.shape[2] == 8 and torch.equal(lengths, batch["tone_lengths"])
            mask = reach(lengths, x.shape[1])
            logits = model(x.to(model.output.weight.dtype), mask)
            return F.cross_entropy(logits.flatten(0, 1), batch["tone"].masked_fill(~mask, -100).flatten(), reduction="sum")

    class Pictures(hetseq.Task):
        fields = {"image": hetseq.Ragged(torch.uint8, (3, None, None), padding=7), "label": hetseq.Field(torch.int64)}
        losses, looks_at_height = ["nll"], True
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.convolution, self.dropout, self.output = nn.Conv2d(3, 8, 3, padding=1), nn.Dropout2d(0.1), nn.Linear(8, 3)
            def forward(self, x, mask):
                mask = mask[:, None]
                x = self.dropout(torch.relu(self.convolution(x * mask))) * mask
                return self.output(x.sum((2, 3)) / mask.sum((2, 3)))
        def model(self, config):
            return self.Model()
        def forward(self, model, batch):
            x, shape = batch["image"], batch["image_shape"]
            assert all(torch.tensor(x.shape[1:]) >= shape.max(0).values) and bool((shape[:, 0] == 3).all())
            mask = reach(shape[:, 2], x.shape[3])[:, None].expand(-1, x.shape[2], -1)
            if self.looks_at_height:
                mask = mask & reach(shape[:, 1], x.shape[2])[:, :, None]
            scores = model(x.to(model.output.weight.dtype) / 255, mask)
            return F.cross_entropy(scores, batch["label"], reduction="sum")

    class Forgets(Pictures):
        looks_at_height = False

    class Fixed(hetseq.Task):
        fields = {"image": hetseq.Field(torch.uint8, (3, 9, 11)), "label": hetseq.Field(torch.int64)}
        losses = ["nll"]
        def model(self, config):
            return nn.Sequential(nn.Flatten(), nn.Linear(297, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 3))
        def forward(self, model, batch):
            scores = model(batch["image"].to(model[1].weight.dtype) / 255)
            return F.cross_entropy(scores, batch["label"], reduction="sum")

    class Encoded(Fixed):
        fields = {"image": hetseq.Bytes(), "label": hetseq.Field(torch.int64)}
        def collate(self, batch):
            assert all(row.dtype == torch.uint8 and row.dim() == 1 for row in batch["image"])
            return {**batch, "image": torch.stack([hetseq.decode_image(row) for row in batch["image"]])}
"""


def png(values):
    """Of (3, height, width)."""
    file = io.BytesIO()
    Image.fromarray(values.transpose(1, 2, 0)).save(file, "PNG")
    return file.getvalue()


class ShapesTest(Case):
    def setUp(self):
        super().setUp()
        self.draw = np.random.default_rng(4)
        self.write("tasks.py", TASKS)

    def write_shards(self, kind, samples=SAMPLES, name=None):
        sample = {"sound": self.sound, "pictures": self.picture, "both": self.both}[kind]
        rows = [sample(i) for i in range(samples)]
        if kind != "both":
            return hetseq.write_shards(rows, self.folder, name=name or kind, rows_per_shard=40)
        for name, field in (("fixed", "image"), ("encoded", "bytes")):
            hetseq.write_shards(({"image": row[field], "label": row["label"]} for row in rows), self.folder, name=name)
        return None

    def sound(self, i):
        frames = int(min(2 + self.draw.geometric(0.3), 20))
        return {"sound": self.draw.normal(size=(frames, 8)).astype(np.float32), "tone": self.draw.integers(0, 3, frames)}

    def picture(self, i):
        height, width = (int(min(3 + self.draw.geometric(0.3), 14)) for _ in range(2))
        return {"image": self.draw.integers(0, 256, (3, height, width), dtype=np.uint8), "label": i % 3}

    def both(self, i):
        image = self.draw.integers(0, 256, (3, 9, 11), dtype=np.uint8)
        return {"image": image, "bytes": png(image), "label": i % 3}

    def train(self, ranks, tasks, refused=()):
        """In one script. What it printed."""
        options = dict(batch_size=32, balance="declared", optimizer="sgd", lr=0.1, max_update=3, threads=1, block_length=16,
                       shuffle_blocks=2, max_sentences=capacities(*([32] if ranks == 1 else [7, 25, 0])))
        return self.run_ranks(ranks, self.write("script.py", f"""
            import hetseq, tasks

            def train(name, data):
                task = getattr(tasks, name)()
                task.self_test = {ranks} == 1 and name != "Fixed" and "broken" not in data
                hetseq.train(task, data=data + "-0*.h5", save_dir=f"{{name}}-{ranks}-{{data}}", **{options!r})

            for name, data in {tasks!r}.items():
                train(name, data)
            for name, data in {refused!r}:
                try:
                    train(name, data)
                except hetseq.Error as error:
                    print("refused", name, data, error.code, flush=True)
        """))

    def test_the_cut_does_not_matter_and_what_does_not_fit_is_refused(self):
        tasks = {"Sound": "sound", "Pictures": "pictures", "Fixed": "fixed", "Encoded": "encoded"}
        for kind in ("sound", "pictures", "both"):
            self.write_shards(kind)
        self.write_broken("sound", "sound_offsets", 3, 1)
        self.write_broken("pictures", "image_shape", (5, 2), 30)

        said = self.train(1, tasks, [("Forgets", "pictures"), ("Sound", "broken-sound"), ("Pictures", "broken-pictures")])
        self.train(3, tasks)

        for task, data in tasks.items():
            with self.subTest(task):
                self.assert_near_with(task, data)
        for ranks in (1, 3):  # bytes that collate decodes give the bits of fields that were decoded before
            self.assertEqual(*(self.model(task, ranks, tasks[task]).read_bytes() for task in ("Fixed", "Encoded")))
        for text in ("refused Forgets pictures 78", "depends on how far rows are padded", "refused Sound broken-sound 65",
                     "dataset 'sound', row 2 does not fit the shape of its rows", "expected a multiple of 8",
                     "refused Pictures broken-pictures 65", "field 'image', sample 5: the row does not fit its shape"):
            self.assertIn(text, said)

    def model(self, task, ranks, data):
        return self.folder / f"{task}-{ranks}-{data}" / "model.safetensors"

    def assert_near_with(self, task, data):
        difference = largest_difference(self.model(task, 1, data), self.model(task, 3, data))
        print(f"{task}: largest difference {difference:.2g}")
        self.assertLess(difference, 1e-6)

    def write_broken(self, kind, field, place, more):
        path = self.write_shards(kind, 30, name=f"broken-{kind}")[0]
        with h5py.File(path, "r+") as file:
            file[field][place] += more


class SamplesTest(unittest.TestCase):
    """What the self-test makes of a micro-batch."""

    def test_rows_are_trimmed_and_padded_in_each_unequal_dimension(self):
        shapes = torch.tensor([[3, 2, 5], [3, 4, 1], [3, 1, 1]])
        padded = torch.full((3, 3, 4, 5), 7)
        for row, (_, height, width) in zip(padded, shapes.tolist()):
            row[:, :height, :width] = 1
        samples = Samples({"x": padded, "x_shape": shapes}, {"x": 7}, shapes={"x": (3, None, None)})

        for chosen, extra, size in (([0, 1, 2], 0, (4, 5)), ([2, 1], 0, (4, 1)), ([2], 0, (1, 1)), ([0, 2], 2, (4, 7))):
            with self.subTest(chosen):
                x = samples.given(chosen, extra)["x"]

                self.assertEqual(tuple(x.shape), (len(chosen), 3, *size))
                self.assertEqual(x.eq(1).sum((1, 2, 3)).tolist(), [int(shapes[i].prod()) for i in chosen])
                self.assertEqual(x.eq(7).sum().item(), x.numel() - x.eq(1).sum().item())
        self.assertEqual(tuple(samples.given([2], 3, trimmed=False)["x"].shape), (1, 3, 4, 5))
        self.assertEqual(samples.chosen(2), [0, 2])

    def test_bytes_are_taken_as_they_are(self):
        rows = [torch.arange(i, dtype=torch.uint8) for i in (3, 1, 2)]
        samples = Samples({"x": rows}, collate=lambda batch: {"x": torch.stack([row.sum() for row in batch["x"]])})

        self.assertEqual(samples.batch([2, 0])["x"].tolist(), [1, 3])


class DescriptionTest(unittest.TestCase):
    def task(self, fields, **more):
        return hetseq.task(nn.Linear(1, 1), fields, loss=lambda model, batch: batch["x"].sum(), **more)

    def refused(self, text, fields, **more):
        with self.assertRaises(TaskError) as caught:
            describe(self.task(fields, **more), "")
        self.assertIn(text, str(caught.exception))

    def test_bytes(self):
        fields = {"x": hetseq.Bytes()}
        self.refused("the task has neither transform nor collate", fields)
        collate = {"collate": lambda batch: batch}
        self.refused("which is not a ragged field", fields, tokens="x", **collate)
        self.refused("use hetseq.samples", fields, weights=hetseq.tokens("x"), **collate)
        self.refused("shall be like 'x'", {**fields, "y": hetseq.Ragged(torch.int64, same_lengths_as="x")}, **collate)

    def test_shapes(self):
        for shape in ((8,), (None, -1), (None, 0), None, (None, 2.0), ()):
            with self.subTest(shape):
                self.refused("None for each dimension", {"x": hetseq.Ragged(torch.int64, shape)})
        images = {"x": hetseq.Ragged(torch.uint8, (3, None, None))}
        self.refused("have no one length", {**images, "y": hetseq.Ragged(torch.int64, same_lengths_as="x")})
        self.refused("under which the shapes of 'x' arrive", {**images, "x_shape": hetseq.Field(torch.int64, (3,))})

    def test_what_is_not_made_a_tensor_is_named(self):
        from hetseq.results import collated
        task = self.task({"x": hetseq.Bytes()}, collate=lambda batch: batch)
        with self.assertRaisesRegex(TaskError, "collate gave list for 'x'"):
            collated(task, {"x": [torch.zeros(3, dtype=torch.uint8)]})


if __name__ == "__main__":
    unittest.main(verbosity=2)
