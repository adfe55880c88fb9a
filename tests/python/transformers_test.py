"""Models of transformers, unmodified, dropout on: the result does not depend on how batches are cut."""

import json
import shutil
import unittest

from harness import Case, need, tensors

need("torch", "torch._dynamo", "numpy", "h5py", "safetensors", "transformers")

import h5py
import numpy as np

SAMPLES = 256

TASKS = """
    import torch, hetseq
    from torch.nn import functional as F
    from transformers import (BertConfig, BertForSequenceClassification, GPT2Config, GPT2LMHeadModel, ViTConfig,
                              ViTForImageClassification)

    class Gpt2(hetseq.Task):
        fields = {"ids": hetseq.Field(torch.int64, (16,))}
        losses = ["nll"]
        def model(self, config):
            return GPT2LMHeadModel(GPT2Config(vocab_size=50, n_positions=16, n_embd=32, n_layer=2, n_head=4))
        def weights(self, batch):
            return batch["ids"][:, 1:].numel()
        def forward(self, model, batch):
            logits = model(input_ids=batch["ids"]).logits[:, :-1]
            return F.cross_entropy(logits.flatten(0, 1), batch["ids"][:, 1:].flatten(), reduction="sum")

    class Bert(hetseq.Task):
        fields = {"ids": hetseq.Field(torch.int64, (16,)), "label": hetseq.Field(torch.int64)}
        def model(self, config):
            return BertForSequenceClassification(BertConfig(
                vocab_size=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
                max_position_embeddings=16, num_labels=5))
        def forward(self, model, batch):
            return F.cross_entropy(model(input_ids=batch["ids"]).logits, batch["label"], reduction="sum")

    class Vit(hetseq.Task):
        fields = {"image": hetseq.Field(torch.float32, (1, 12, 12)), "label": hetseq.Field(torch.int64)}
        def model(self, config):
            return ViTForImageClassification(ViTConfig(
                image_size=12, patch_size=4, num_channels=1, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                intermediate_size=64, num_labels=5, hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1))
        def forward(self, model, batch):
            return F.cross_entropy(model(pixel_values=batch["image"]).logits, batch["label"], reduction="sum")

    class Cnn(hetseq.Task):
        fields = Vit.fields
        def model(self, config):
            return torch.nn.Sequential(
                torch.nn.Conv2d(1, 8, 3), torch.nn.ReLU(), torch.nn.Dropout2d(0.2), torch.nn.MaxPool2d(2),
                torch.nn.Flatten(), torch.nn.Dropout(0.25), torch.nn.Linear(200, 5))
        def forward(self, model, batch):
            return F.cross_entropy(model(batch["image"]), batch["label"], reduction="sum")
"""
DATA = {"Gpt2": ("ids",), "Bert": ("ids", "label"), "Vit": ("image", "label"), "Cnn": ("image", "label")}


class TransformersTest(Case):
    def setUp(self):
        super().setUp()
        draw = np.random.default_rng(2)
        values = {"ids": draw.integers(0, 50, (SAMPLES, 16)), "label": draw.integers(0, 5, SAMPLES),
                  "image": draw.normal(size=(SAMPLES, 1, 12, 12)).astype(np.float32)}
        self.write("tasks.py", TASKS)
        for task, names in DATA.items():
            with h5py.File(self.folder / f"{task}.h5", "w") as file:
                for name in names:
                    file[name] = values[name]

    def train(self, ranks, names, suffix="", **options):
        """Trains the tasks of these names, each in a folder of its name, in one process a rank."""
        self.run_ranks(ranks, self.write("script.py", f"""
            import hetseq, tasks
            for name in {names!r}:
                hetseq.train(getattr(tasks, name)(), data=name + ".h5", batch_size=64, balance="declared",
                             save_dir=name + {suffix!r}, **{options!r})
        """))

    def losses(self, run):
        lines = [json.loads(line) for line in (self.folder / run / "metrics.jsonl").read_text().splitlines()]
        return [line["loss"] for line in lines if line["kind"] == "train"]

    def test_one_rank_and_ranks_of_7_57_and_0_samples_agree(self):
        options = {"optimizer": "sgd", "lr": 0.1, "max_update": 5}
        self.train(1, list(DATA), "-1", max_sentences=64, **options)
        self.train(3, list(DATA), "-3", max_sentences={"0": 7, "1": 57, "2": 0}, **options)
        for task in DATA:
            with self.subTest(task):
                self.assert_near(task, 1e-5)

    def test_losses_of_adamw_agree(self):
        options = {"optimizer": "adamw", "lr": 1e-3, "max_update": 5, "log_interval": 1}
        self.train(1, ["Gpt2"], "-1", max_sentences=64, **options)
        self.train(2, ["Gpt2"], "-2", max_sentences={"0": 7, "1": 57}, **options)
        self.assertEqual(len(self.losses("Gpt2-1")), 5)
        for a, b in zip(self.losses("Gpt2-1"), self.losses("Gpt2-2")):
            self.assertAlmostEqual(a, b, delta=1e-5 * a)

    def test_from_pretrained_loads_a_run(self):
        from transformers import GPT2LMHeadModel
        self.train(1, ["Gpt2"], max_update=2)
        model = GPT2LMHeadModel.from_pretrained(self.folder / "Gpt2")
        saved = tensors(self.folder / "Gpt2/model.safetensors")
        self.assertNotIn("lm_head.weight", saved)
        self.assertTrue(all((model.state_dict()[name] == value).all() for name, value in saved.items()))
        self.assertIs(model.lm_head.weight, model.transformer.wte.weight)

    @unittest.skipUnless(shutil.which("g++"), "torch.compile needs g++")
    def test_from_pretrained_loads_a_run_of_a_compiled_model(self):
        from transformers import GPT2LMHeadModel
        # Without dropout in attention, which takes a graph to pieces: they would be compiled for 10 s.
        self.write("tasks.py", TASKS + """
    class Compiled(Gpt2):
        def model(self, config):
            model = GPT2LMHeadModel(GPT2Config(vocab_size=50, n_positions=16, n_embd=32, n_layer=2, n_head=4, attn_pdrop=0))
            return torch.compile(model, backend="aot_eager")
""")
        self.run_ranks(1, self.write("script.py", """
            import torch, hetseq, tasks
            task = tasks.Compiled()
            task.self_test = False  # each other size of a batch is compiled again
            trained = hetseq.train(task, data="Gpt2.h5", max_update=1, batch_size=64, max_sentences=64, balance="declared",
                                   save_dir="run")
            loaded = hetseq.load("run")
            assert all(torch.equal(a.cpu(), b) for a, b in zip(trained.parameters(), loaded.parameters()))
        """))
        model = GPT2LMHeadModel.from_pretrained(self.folder / "run")
        saved = tensors(self.folder / "run/model.safetensors")
        self.assertTrue(all((model.state_dict()[name] == value).all() for name, value in saved.items()))


if __name__ == "__main__":
    unittest.main(verbosity=2)
