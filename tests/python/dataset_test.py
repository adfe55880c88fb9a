"""Data from datasets in Python: the same parameters as from shards, random numbers of samples, and what is refused."""

import unittest

from harness import Case, need, tensors

need("torch", "numpy", "h5py", "safetensors")

import collections
import itertools
import pathlib
import random
import re
import tempfile
import time
from unittest import mock

import torch
from torch import nn

import hetseq
from hetseq import datasets

SAMPLES = 300

TASK = f"""
    import os, random
    import numpy
    import torch, hetseq
    from torch import nn
    from torch.nn import functional as F

    SAMPLES = {SAMPLES}
    draw = torch.Generator().manual_seed(3)
    IMAGES = torch.randint(0, 256, (SAMPLES, 6, 6), dtype=torch.uint8, generator=draw)
    LABELS = (IMAGES.sum((1, 2)) % 4).to(torch.int64)
    LENGTHS = torch.randint(1, 12, (SAMPLES,), generator=draw).tolist()
    TEXTS = [torch.randint(3, 20, (length,), generator=draw) for length in LENGTHS]

    class Tuples(torch.utils.data.Dataset):
        def __len__(self):
            return SAMPLES
        def __getitem__(self, i):
            if i >= SAMPLES:
                raise IndexError(i)
            return IMAGES[i], LABELS[i]

    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self):
            return ({{"image": IMAGES[i].numpy(), "label": int(LABELS[i])}} for i in range(SAMPLES))

    def rows():
        return [{{"image": IMAGES[i].numpy(), "label": int(LABELS[i])}} for i in range(SAMPLES)]

    class Images(hetseq.Task):
        fields = {{"image": hetseq.Field(torch.uint8, (6, 6)), "label": hetseq.Field(torch.int64, is_target=True)}}
        losses, metrics = ["nll"], ["accuracy"]
        defaults = {{"precision": "fp64", "optimizer": "sgd", "lr": 0.05, "device": "cpu", "save-minutes": 0}}
        def model(self, config):
            return nn.Sequential(nn.Flatten(), nn.Linear(36, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 4))
        def forward(self, model, batch):
            x = batch["image"]
            logits = model(x.to(next(model.parameters()).dtype) / (1 if x.is_floating_point() else 255))
            sums = {{"nll": F.cross_entropy(logits, batch["label"], reduction="sum")}}
            if not model.training:
                sums["accuracy"] = (logits.argmax(-1) == batch["label"]).sum()
            return sums
        def predict(self, model, batch):
            return {{"class": model(batch["image"].to(next(model.parameters()).dtype) / 255).argmax(-1)}}

    class Read(Images):
        def dataset(self, config, split):
            if split == "train":
                return Tuples()
            if split == "unlabelled":
                return [{{"image": image}} for image in IMAGES[:50]]
            return rows()

    class Drawn(Read):
        # What the dataset, transform and collate draw, each by its own means.
        def dataset(self, config, split):
            class Noisy(Tuples):
                def __getitem__(self, i):
                    noise = random.randrange(4) + numpy.random.randint(4) + torch.randint(4, (6, 6))
                    return (IMAGES[i].long() + noise).clamp(max=255), LABELS[i]
            return Noisy()
        fields = dict(Images.fields, image=hetseq.Field(torch.int64, (6, 6)))
        def transform(self, sample, training):
            image = sample["image"].double() / 255
            if training and torch.rand(()) < 0.5:
                image = image.flip(-1)
            return {{"image": image, "label": sample["label"]}}
        def collate(self, batch):
            scales = torch.stack([torch.rand((), generator=g, dtype=torch.float64) for g in hetseq.generators(batch)])
            assert len(hetseq.sample_ids(batch)) == len(scales)
            return {{**batch, "image": batch["image"] * (0.5 + scales)[:, None, None]}}

    class Rows(Drawn):  # the same of shards, whose images are drawn in transform alone
        fields = Images.fields
        dataset = hetseq.Task.dataset
        def transform(self, sample, training):
            noise = random.randrange(4) + numpy.random.randint(4) + torch.randint(4, (6, 6))
            return super().transform({{**sample, "image": (sample["image"].long() + noise).clamp(max=255)}}, training)

    class Texts(hetseq.Task):
        fields = {{"ids": hetseq.Ragged(torch.int32)}}
        losses, weights, tokens = ["nll"], hetseq.tokens("ids"), "ids"
        defaults = Images.defaults
        def model(self, config):
            return nn.Sequential(nn.Embedding(20, 8), nn.Linear(8, 3))
        def forward(self, model, batch):
            mask = torch.arange(batch["ids"].shape[1], device=batch["ids"].device) < batch["ids_lengths"][:, None]
            targets = (batch["ids"] % 3).long().masked_fill(~mask, -100)
            return F.cross_entropy(model(batch["ids"].long()).flatten(0, 1), targets.flatten(), reduction="sum", ignore_index=-100)

    class ReadTexts(Texts):
        def dataset(self, config, split):
            return [text.tolist() for text in TEXTS]

    class Tagged(Texts):  # whose labels data for predictions lack
        fields = {{"ids": hetseq.Ragged(torch.int32), "label": hetseq.Field(torch.int64, is_target=True)}}
        weights, tokens = hetseq.samples, ""
        def dataset(self, config, split):
            label = {{}} if split == "unlabelled" else {{"label": 1}}
            return [{{"ids": text.numpy().astype("uint16"), **label}} for text in TEXTS]
        def forward(self, model, batch):
            return F.cross_entropy(model(batch["ids"].long())[:, 0], batch["label"], reduction="sum")
        def predict(self, model, batch):
            return {{"class": model(batch["ids"].long())[:, 0].argmax(-1)}}

    class Split(Read):  # what it draws is the same on all ranks, for both splits
        def dataset(self, config, split):
            numbers = list(range(SAMPLES))
            random.shuffle(numbers)
            train, valid = torch.utils.data.random_split(numbers, [0.8, 0.2])
            own = sorted(train if split == "train" else valid)
            print(f"{{split}} has {{own[:3]}} {{numpy.random.randint(10**6)}}")
            return torch.utils.data.Subset(Tuples(), own)

    class Unlike(Read):
        def dataset(self, config, split):
            return torch.utils.data.Subset(Tuples(), sorted(range(SAMPLES), key=lambda i: i * (-1) ** int(os.environ["OMPI_COMM_WORLD_RANK"])))

    class Told(Images):  # by shards, and told what the first sample's generator begins with
        def collate(self, batch):
            print("begins with", [generator.initial_seed() for generator in hetseq.generators(batch)][0])
            return batch

    class Other(Read):  # one sample of the training data is another
        def dataset(self, config, split):
            samples = rows()
            samples[0] = dict(samples[0], label=3 - samples[0]["label"])
            return samples

    def broken(how):
        class Broken(Tuples):
            def __getitem__(self, i):
                if i != 77:
                    return IMAGES[i], LABELS[i]
                if how == "shape":
                    return IMAGES[i][:5], LABELS[i]
                if how == "type":
                    return IMAGES[i].float(), LABELS[i]
                if how == "value":
                    return IMAGES[i].long() + 300, LABELS[i]
                if how == "death":
                    os._exit(9)
                raise OSError("the picture is broken")
        return Broken()

    class Bad(Images):
        options = {{"how": hetseq.Option("shape", "what is wrong")}}
        def dataset(self, config, split):
            if config.how == "loader":
                return torch.utils.data.DataLoader(Tuples())
            if config.how == "splits":
                return {{"train": Tuples()}}
            if config.how == "fields":
                return [{{"image": image}} for image in IMAGES]
            return broken(config.how)
"""

SETTINGS = 'dict(max_sentences=16, batch_size=64, threads=1, balance="equal", max_update=12, cache_dir="cache")'

SCRIPT = f"""
    import os, task, hetseq
    import torch

    def train(name, kind, **options):
        return hetseq.train(kind(), save_dir=f"{{name}}-{{os.environ.get('OMPI_COMM_WORLD_SIZE', '1')}}", **{{**{SETTINGS}, **options}})

    def refused(name, kind, **options):
        try:
            train(name, kind, overwrite=True, **options)
        except hetseq.Error as error:
            return str(error)
        raise AssertionError(f"{{name}} was trained")
"""


class DatasetTest(Case):
    def setUp(self):
        super().setUp()
        self.write("task.py", TASK)

    def script(self, ranks, text):
        import textwrap
        body = textwrap.indent(textwrap.dedent(text), "    ")
        self.write("script.py", textwrap.dedent(SCRIPT) + "\nif __name__ == '__main__':\n" + body)
        return self.run_ranks(ranks, "script.py")

    def command(self, name, task, *words, ranks=1, code=0, updates=9):
        common = ("--max-sentences", "16", "--batch-size", "64", "--threads", "1", "--balance", "equal", "--cache-dir", "cache")
        return self.hetseq(ranks, "train", f"task.py:{task}", "--save-dir", name, "--max-update", updates, *common, *words, code=code)

    def assert_same_bytes(self, *names):
        models = [(self.folder / name / "model.safetensors").read_bytes() for name in names]
        for name, model in zip(names, models):
            self.assertEqual(model == models[0], True, f"{name} differs from {names[0]}")

    def assert_near_models(self, a, b, most=1e-12):
        a, b = (tensors(self.folder / name / "model.safetensors") for name in (a, b))
        for name in a:
            self.assertLess((a[name] - b[name]).abs().max().item(), most, name)

    def test_parameters_are_those_of_shards(self):
        for ranks in (1, 3):
            self.script(ranks, """
                if hetseq.rank() <= 0 and not os.path.exists("images"):
                    hetseq.write_shards({"image": task.IMAGES, "label": task.LABELS}, "images", name="images")
                    hetseq.write_shards([{"ids": text.int()} for text in task.TEXTS], "texts", ragged=["ids"], name="texts")
                train("read", task.Read)
                train("cached", task.Read, cache_data="on")
                train("shards", task.Images, data="images")
                train("list", task.Images, data=task.rows())
                train("stream", task.Images, data=task.Stream(), valid_data=task.rows())
                train("drawn", task.Drawn, data_workers=2)
                train("rows", task.Rows, data="images", data_workers=1)
                texts = dict(batch_size=None, max_sentences=None, batch_tokens=200, max_tokens=100, max_update=10)
                train("texts", task.ReadTexts, **texts)
                train("text-shards", task.Texts, data="texts", **texts)
                """)
            self.assert_same_bytes(*(f"{name}-{ranks}" for name in ("shards", "read", "cached", "list", "stream")))
            self.assert_same_bytes(f"drawn-{ranks}", f"rows-{ranks}")
            self.assert_same_bytes(f"texts-{ranks}", f"text-shards-{ranks}")
        for name in ("read", "drawn", "texts"):
            self.assert_near_models(f"{name}-1", f"{name}-3")
        self.assertRegex(self.hetseq(1, "evaluate", "list-1", code=66),
                         r"no such file: train \(the task has no method dataset.*hetseq.train\(data=...\)\): name shards")

    def test_a_stopped_run_goes_on_with_other_ranks_and_workers(self):
        self.command("whole", "Drawn")
        self.command("parts", "Drawn", "--data-workers", "2", "--stop-after", "4", ranks=3, code=75)
        self.command("parts", "Drawn", "--data-workers", "1", ranks=2)
        self.assert_near_models("whole", "parts")
        self.assertIn("sample 0 of 'train' is ", self.command("parts", "Other", updates=20, code=78))

    def test_what_is_drawn_differs_by_epoch_and_not_in_validation(self):
        self.write("epochs.py", """
            import torch, task
            from hetseq.batches import BatchMaker
            maker = BatchMaker(task.Drawn())
            maker.configure({"seed": 5, "options": {"data-workers": "2"}, "cache_dir": "cache", "model_config": "", "init_model": "",
                             "data": "train", "dropout": None, "attention_dropout": None})
            assert maker.kind("train") == "samples"
            number = maker._source("train").number
            def images(ids, epoch):
                ids = torch.tensor(ids)
                given = {"hetseq_sample": ids, "hetseq_source": torch.full_like(ids, number)}
                return maker.make(given, ids, epoch).batch["image"]
            first = images([4, 9, 200], 0)
            assert torch.equal(first, images([4, 9, 200], 0))
            assert torch.equal(first[[2, 0]], images([200, 4], 0))
            assert not torch.equal(first, images([4, 9, 200], 1))
            assert torch.equal(images([4, 9], None), images([4, 9], None))
            state = torch.get_rng_state()
            images([1], 0)
            assert torch.equal(state, torch.get_rng_state())
            maker.end()
            """)
        self.run_ranks(1, "epochs.py")

    def test_datasets_of_hugging_face(self):
        try:
            import datasets  # noqa: F401
        except ImportError:
            self.skipTest("the package datasets is missing")
        self.script(2, """
            import datasets
            from datasets.table import InMemoryTable
            table = InMemoryTable.from_pydict({"label": task.LABELS.tolist(), "image": task.IMAGES.tolist()})
            data = datasets.Dataset(table, fingerprint="a-table")
            train("read", task.Images, data=data)
            train("cached", task.Images, data=data, cache_data="on")
            train("list", task.Images, data=task.rows())
            """)
        self.assert_same_bytes("read-2", "cached-2", "list-2")

    def test_evaluation_and_predictions_read_splits(self):
        text = self.command("run", "Read", "--valid-data", "valid", ranks=2)
        told = float(text[text.rindex(" valid "):].split("loss ")[1].split()[0])
        import json
        found = self.hetseq(2, "evaluate", "run", "--data", "valid", "--cache-dir", "other", "--json")
        self.assertAlmostEqual(json.loads(found[found.index("{"):])["loss"], told, delta=1e-4)
        import h5py
        for data in ("valid", "unlabelled"):
            self.hetseq(1, "predict", "run", "--data", data, "--cache-dir", "cache", "--output", f"{data}.h5")
        classes = {name: h5py.File(self.folder / f"{name}.h5")["class"][:].tolist() for name in ("valid", "unlabelled")}
        self.assertEqual(len(classes["valid"]), SAMPLES)
        self.assertEqual(classes["unlabelled"], classes["valid"][:50])

    def test_predictions_of_rows_of_unequal_length_need_no_targets(self):
        self.command("run", "Tagged", updates=2, ranks=2)
        self.hetseq(1, "predict", "run", "--data", "unlabelled", "--cache-dir", "cache", "--output", "out.h5")
        import h5py
        self.assertEqual(len(h5py.File(self.folder / "out.h5")["class"]), SAMPLES)

    def test_what_a_dataset_draws_is_the_same_on_all_ranks_and_in_both_splits(self):
        text = self.command("drawn", "Split", "--valid-data", "valid", "--seed", "7", ranks=2)
        told = {split: sorted(set(re.findall(f"{split} has (.*)", text))) for split in ("train", "valid")}
        self.assertEqual([len(lines) for lines in told.values()], [1, 1], text)
        self.assertNotEqual(told["train"], told["valid"])
        self.assertEqual(told["train"][0].split()[-1], told["valid"][0].split()[-1])

    def test_a_rank_with_other_samples_is_named(self):
        for choice in ("off", "on"):
            text = self.command("unlike", "Unlike", "--cache-data", choice, ranks=2, code=78)
            self.assertIn("the first rank's 'train' is another than this one's: sample", text)
            self.assertIn("[rank 1 on ", text)

    def test_a_dataset_that_is_given_is_read_where_a_folder_has_its_split_s_name(self):
        (self.folder / "train").mkdir()
        self.script(1, 'train("given", task.Images, data=task.Tuples(), max_update=1)')
        (self.folder / "train/cat.jpg").touch()  # a split of that name, of a task with a dataset
        self.command("split", "Read", updates=1)
        self.hetseq(1, "train", "split/config.cfg", "--save-dir", "again", "--cache-dir", "cache")

    def test_what_collate_draws_of_shards_depends_on_the_seed(self):
        self.script(1, 'hetseq.write_shards(task.rows(), "shards")')
        texts = [self.command(f"told-{seed}", "Told", "--data", "shards/*.h5", "--seed", seed, updates=1) for seed in (1, 2)]
        self.assertNotEqual(*(re.search(r"begins with (\d+)", text)[1] for text in texts))

    def test_samples_that_tell_another_dataset_lie_irregularly(self):
        from hetseq.datasets import _telling_samples
        self.assertEqual(_telling_samples(40), list(range(40)))
        for length in (65, 160, 1000000):
            samples = _telling_samples(length)
            self.assertEqual((len(set(samples)), samples), (32, sorted(samples)))
            self.assertEqual((samples[0], samples[-1]), (0, length - 1))
            for period in range(2, 17):  # of samples that repeat
                self.assertGreater(len({sample % period for sample in samples}), period // 2)

    def test_bad_data_are_named(self):
        self.script(1, """
            def expect(words, *arguments, **options):
                text = refused("bad", *arguments, **options)
                for word in words:
                    assert word in text, (word, text)

            for how, words in {"shape": ["sample 77 of 'train' (Broken), field 'image', has the shape (5, 6)", "(6, 6)"],
                               "type": ["sample 77", "torch.float32", "torch.uint8"],
                               "value": ["sample 77", "do not fit torch.uint8"],
                               "error": ["sample 77", "the picture is broken", "OSError"],
                               "death": ["a process that makes samples of 'train' died, ended with code 9"],
                               "fields": ["of 'train' have no 'label'"],
                               "loader": ["DataLoader", "loader.dataset"],
                               "splits": ["'train'", "give one of them"]}.items():
                expect(words, task.Bad, how=how)
            class Helper(task.Images):
                def transform(self, image):
                    return image
            expect(["transform does not take sample, training"], Helper, data="images")
            expect(["give a number of processes"], task.Read, data_workers="none")
            expect(["name both by split, or both by files"], task.Read, valid_data="images/*.h5")
            expect(["--cache-data"], task.Read, cache_data="some")
            expect(["fields of unequal length"], task.ReadTexts, cache_data="off")
            expect(["is a stream"], task.Images, data=task.rows(), valid_data=task.Stream())
            expect(["--cache-dir none"], task.Read, cache_dir="none")
            """)

    def test_processes_end_with_their_rank(self):
        import subprocess
        import time
        self.write("killed.py", """
            import os, signal, task, hetseq
            if __name__ == "__main__":
                class Dies(task.Tuples):
                    def __getitem__(self, i):
                        if i == 77:
                            os.kill(os.getppid(), signal.SIGKILL)
                        return super().__getitem__(i)
                hetseq.train(task.Images(), data=Dies(), data_workers=2, cache_dir="cache", max_update=100, batch_size=64)
            """)
        self.run_ranks(1, "killed.py", code=-9)
        for _ in range(50):
            left = subprocess.run(["pgrep", "-f", "killed.py"], stdout=subprocess.PIPE, text=True).stdout.split()
            if not left:
                return
            time.sleep(0.2)
        self.fail(f"processes {left} are left")


class PieceTest(unittest.TestCase):
    """What a process makes."""

    def source(self, rows, field, transform):
        task = hetseq.task(nn.Linear(1, 1), {"x": field}, loss=lambda model, batch: 0, transform=transform)
        source = datasets.Source(task, rows, "train", 1, 1)
        self.addCleanup(source.readers.end)
        return source

    def test_a_transform_may_keep_one_tensor_and_change_what_it_gets(self):
        rows, buffer = [torch.full((3,), i, dtype=torch.float32) for i in range(5)], torch.empty(3)

        def transform(sample, training):
            buffer.copy_(sample["x"].mul_(2))
            return {"x": buffer, "number": 7}

        source = self.source(rows, hetseq.Field(torch.float32, (3,)), transform)

        for _ in range(2):
            values = source.make([1, 4, 2], None, 0).values
            self.assertEqual(values["x"].tolist(), [[2] * 3, [8] * 3, [4] * 3])
            self.assertEqual(values["number"].tolist(), [7, 7, 7])

    def test_rows_of_unlike_shapes(self):
        rows, buffer = [torch.arange(length) for length in (2, 2, 3, 0)], torch.empty(3, dtype=torch.int64)

        def transform(sample, training):
            length = len(sample["x"])
            buffer[:length] = sample["x"]
            return {"x": buffer[:length]}

        values = self.source(rows, hetseq.Ragged(torch.int64), transform).make([0, 1, 2, 3], None, 0).values["x"]

        self.assertEqual([row.tolist() for row in values], [[0, 1], [0, 1], [0, 1, 2], []])

    def test_rows_without_values_have_the_field_s_type(self):
        rows = [torch.arange(length) for length in (2, 0)]
        source = self.source(rows, hetseq.Ragged(torch.int64), lambda sample, training: {"x": torch.tensor(sample["x"].tolist())})

        values = source.make([1, 0], None, 0).values["x"]

        self.assertEqual([(str(row.dtype), row.tolist()) for row in values], [("int64", []), ("int64", [0, 1])])

    def test_an_error_of_the_dataset_s_own_lines_keeps_them(self):
        class Boxes:
            boxes = [[1], [], [3]]

            def __len__(self):
                return 3

            def __getitem__(self, i):
                return torch.tensor(self.boxes[i][0])

        source = self.source(Boxes(), hetseq.Field(torch.int64), lambda sample, training: sample)
        with self.assertRaisesRegex(hetseq.TaskError, r"(?s)sample 1 of 'train' .*has 3 by its length.*self\.boxes\[i\]\[0\].*IndexError"):
            source.make([0, 1], None, 0)

    def test_each_process_reads_files_that_the_dataset_holds_open_from_its_own_place(self):
        class Rows:
            def __init__(self, file):
                self.file = file

            def __len__(self):
                return 64

            def __getitem__(self, i):
                self.file.seek(4096 * i)
                time.sleep(0.001)  # others seek meanwhile
                return torch.tensor(list(self.file.read(4)), dtype=torch.uint8)

        task = hetseq.task(nn.Linear(1, 1), {"x": hetseq.Field(torch.uint8, (4,))}, loss=lambda model, batch: 0)
        with tempfile.TemporaryFile(buffering=0) as file:
            file.write(b"".join(bytes([i]) * 4096 for i in range(64)))
            file.flush()
            with open(f"/proc/self/fd/{file.fileno()}", "rb", buffering=0) as held:
                source = datasets.Source(task, Rows(held), "train", 1, 4)
                self.addCleanup(source.readers.end)

                pieces = source.readers.results(([i], None, 0) for i in range(64))

                self.assertEqual([piece.values["x"][0].tolist() for piece in pieces], [[i] * 4 for i in range(64)])

    def test_what_is_no_tensor_is_named(self):
        source = self.source([torch.zeros(1)], hetseq.Field(torch.float32, (1,)), lambda sample, training: {"words": "a text"})
        with self.assertRaisesRegex(hetseq.TaskError, "transform of sample 0 of 'train' gave a str for 'words'"):
            source.make([0], None, 0)


class StreamTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, free):
        """An endless stream, on a disk that has so many bytes free, one more sample each time that somebody looks."""
        task = hetseq.task(nn.Linear(1, 1), {"x": hetseq.Field(torch.int64)}, loss=lambda model, batch: 0)
        source = datasets.Source(task, itertools.count(), "endless", 1, 1)
        self.addCleanup(source.readers.end)
        usage = collections.namedtuple("usage", "free")
        with mock.patch.object(datasets.shutil, "disk_usage", side_effect=map(usage, free)):
            source.write_parts(self.folder, [0])

    def test_what_a_stream_draws_depends_on_the_seed(self):
        class Drawn(torch.utils.data.IterableDataset):
            def __iter__(self):
                return iter([random.random(), torch.rand(()).item()])

        def drawn(seed):
            task = hetseq.task(nn.Linear(1, 1), {"x": hetseq.Field(torch.float32)}, loss=lambda model, batch: 0)
            source = datasets.Source(task, Drawn(), "stream", seed, 1)
            self.addCleanup(source.readers.end)
            return [float(sample["x"]) for sample in source._iterated(self.folder)]

        self.assertEqual(drawn(1), drawn(1))
        self.assertNotEqual(drawn(1), drawn(2))

    def test_an_endless_stream_takes_half_of_the_disk_at_most(self):
        with self.assertRaisesRegex(hetseq.TaskError, r"'endless' is a stream, of which 1,000 samples .* 2 MiB free.*--cache-dir.*islice"):
            self.write([2 << 20, 2 << 20, 1 << 20, (1 << 20) - 1])
        self.assertEqual(list(self.folder.iterdir()), [])


if __name__ == "__main__":
    unittest.main()
