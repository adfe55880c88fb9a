"""Data from datasets in Python: the same parameters as from shards, random numbers of samples, and what is refused."""

import unittest

from harness import Case, need, tensors

need("torch", "numpy", "h5py", "safetensors")

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
            return [{{"ids": text.tolist()}} for text in TEXTS]

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

COMMON = ("--max-sentences", "16", "--batch-size", "64", "--threads", "1", "--balance", "equal", "--cache-dir", "cache")


class DatasetTest(Case):
    def setUp(self):
        super().setUp()
        self.write("task.py", TASK)
        self.write("shards.py", """
            import task, hetseq
            hetseq.write_shards({"image": task.IMAGES, "label": task.LABELS}, "images")
            hetseq.write_shards([{"ids": text.int()} for text in task.TEXTS], "texts", ragged=["ids"])
            """)
        self.run_ranks(1, "shards.py")

    def train(self, name, task, *words, ranks=1, code=0, updates=12, cached=True):
        where = COMMON if cached else COMMON[:-2]
        return self.hetseq(ranks, "train", f"task.py:{task}", "--save-dir", name, "--max-update", updates, *where, *words, code=code)

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
            self.train(f"shards-{ranks}", "Images", "--data", "images", cached=False, ranks=ranks)
            self.train(f"read-{ranks}", "Read", ranks=ranks)
            self.train(f"cached-{ranks}", "Read", "--cache-data", "on", ranks=ranks)
            self.assert_same_bytes(f"shards-{ranks}", f"read-{ranks}", f"cached-{ranks}")
        self.assert_near_models("read-1", "read-3")

    def test_a_stopped_run_goes_on_with_other_ranks_and_workers(self):
        self.train("whole", "Drawn", updates=9)
        self.train("parts", "Drawn", "--data-workers", "2", "--stop-after", "4", ranks=3, updates=9, code=75)
        self.train("parts", "Drawn", "--data-workers", "1", ranks=2, updates=9)
        self.assert_near_models("whole", "parts")

    def test_rows_of_shards_are_transformed_as_samples_of_a_dataset(self):
        self.train("read", "Drawn")
        self.train("rows", "Rows", "--data", "images", "--data-workers", "2")
        self.assert_same_bytes("read", "rows")

    def test_what_is_drawn_differs_by_epoch_and_not_in_validation(self):
        self.write("epochs.py", """
            import torch, task
            from hetseq.batches import BatchMaker
            maker = BatchMaker(task.Drawn())
            maker.configure({"seed": 5, "options": {"data-workers": "2"}, "cache_dir": "cache", "model_config": "", "init_model": "", "data": "train",
                             "dropout": None, "attention_dropout": None})
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
            maker.end()
            """)
        self.run_ranks(1, "epochs.py")

    def test_texts_of_unequal_length_are_those_of_shards(self):
        size = ("--batch-tokens", "200", "--max-tokens", "100")
        common = ("--threads", "1", "--balance", "equal", "--max-update", "10", *size)
        for ranks in (1, 3):
            self.hetseq(ranks, "train", "task.py:Texts", "--data", "texts", "--save-dir", f"shards-{ranks}", *common)
            self.hetseq(ranks, "train", "task.py:ReadTexts", "--save-dir", f"read-{ranks}", "--cache-dir", f"cache-{ranks}", *common)
            self.assert_same_bytes(f"shards-{ranks}", f"read-{ranks}")

    def test_a_script_gives_datasets_lists_and_streams(self):
        self.write("script.py", """
            import sys, task, hetseq
            if __name__ == "__main__":
                for name, data in (("tuples", task.Tuples()), ("rows", task.rows()), ("stream", task.Stream())):
                    hetseq.train(task.Images(), data=data, valid_data=task.rows(), max_sentences=16, batch_size=64, threads=1, balance="equal", max_update=12,
                                 save_dir=name, cache_dir="cache")
            """)
        self.run_ranks(2, "script.py")
        self.train("shards", "Images", "--data", "images", cached=False, ranks=2)
        self.assert_same_bytes("shards", "tuples", "rows", "stream")
        self.assertIn("came from a script", self.hetseq(1, "evaluate", "tuples", code=78))

    def test_datasets_of_hugging_face(self):
        try:
            import datasets  # noqa: F401
        except ImportError:
            self.skipTest("the package datasets is missing")
        self.write("script.py", """
            import datasets, task, hetseq
            if __name__ == "__main__":
                data = datasets.Dataset.from_dict({"label": task.LABELS.tolist(), "image": task.IMAGES.tolist()})
                hetseq.train(task.Images(), data=data, max_sentences=16, batch_size=64, threads=1, balance="equal", max_update=12, save_dir="read")
            """)
        self.run_ranks(2, "script.py")
        self.train("shards", "Images", "--data", "images", cached=False, ranks=2)
        self.assert_same_bytes("shards", "read")

    def test_evaluation_and_predictions_read_splits(self):
        self.train("run", "Read", "--valid-data", "valid", ranks=2)
        self.train("files", "Images", "--data", "images", "--valid-data", "images", cached=False, ranks=2)
        found = [self.hetseq(1, "evaluate", "run", "--data", "valid", "--cache-dir", "cache", "--json"),
                 self.hetseq(2, "evaluate", "files", "--json")]
        import json
        losses = [json.loads(text[text.index("{"):])["loss"] for text in found]
        self.assertAlmostEqual(*losses, delta=1e-6)
        for data in ("valid", "unlabelled"):
            self.hetseq(1, "predict", "run", "--data", data, "--cache-dir", "cache", "--output", f"{data}.h5")
        self.hetseq(1, "predict", "files", "--data", "images", "--output", "files.h5")
        import h5py
        classes = {name: h5py.File(self.folder / f"{name}.h5")["class"][:] for name in ("valid", "unlabelled", "files")}
        self.assertEqual(classes["valid"].tolist(), classes["files"].tolist())
        self.assertEqual(classes["unlabelled"].tolist(), classes["files"][:50].tolist())

    def test_bad_samples_are_named(self):
        for how, words in {"shape": ["sample 77 of 'train' (Broken), field 'image', has the shape (5, 6)", "(6, 6)"],
                           "type": ["sample 77", "torch.float32", "torch.uint8"],
                           "value": ["sample 77", "do not fit torch.uint8"],
                           "error": ["sample 77", "the picture is broken", "OSError"],
                           "death": ["died", "--data-workers 1"],
                           "fields": ["of 'train' have no 'label'"],
                           "loader": ["DataLoader", "loader.dataset"],
                           "splits": ["'train'", "give one of them"]}.items():
            with self.subTest(how=how):
                text = self.train(f"bad-{how}", "Bad", "--how", how, "--overwrite", ranks=2, code=78, updates=20)
                for word in words:
                    self.assertIn(word, text)

    def test_a_dataset_that_changed_is_refused(self):
        self.train("run", "Read", "--stop-after", "3", code=75)
        text = self.train("run", "Other", code=78)
        self.assertIn("sample 0 of 'train' is ", text)

    def test_options_that_do_not_fit_are_refused(self):
        for words, expected in {("--data-workers", "none"): "give a number of processes",
                                ("--valid-data", "images"): "name both by split, or both by files",
                                ("--cache-data", "some"): "--cache-data"}.items():
            self.assertIn(expected, self.train("bad", "Read", *words, code=78))
        self.assertIn("fields of unequal length", self.train("bad", "ReadTexts", "--cache-data", "off", code=78))


if __name__ == "__main__":
    unittest.main()
