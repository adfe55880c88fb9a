"""Tasks in Python whose modules ranks train as stages of a pipeline: what one rank trains."""

import json
import re
import unittest

from harness import Case, largest_difference, need, tensors

need("torch", "numpy", "h5py", "safetensors", "transformers")

import h5py
import numpy as np

TASKS = """
    import torch, hetseq
    from torch import nn
    from torch.nn import functional as F
    from transformers import BertConfig, BertForMaskedLM, GPT2Config, GPT2LMHeadModel

    class Gpt2(hetseq.Task):
        fields = {"ids": hetseq.Field(torch.int64, (16,))}
        losses, metrics = ["nll"], ["accuracy"]
        chain = "transformer.h"
        recompute = ["transformer.h.*"]
        tied = True
        def model(self, config):
            return GPT2LMHeadModel(GPT2Config(vocab_size=50, n_positions=16, n_embd=32, n_layer=4, n_head=4,
                                              tie_word_embeddings=self.tied))
        def weights(self, batch):
            return batch["ids"][:, 1:].numel()
        def forward(self, model, batch):
            logits = model(input_ids=batch["ids"]).logits[:, :-1].flatten(0, 1)
            targets = batch["ids"][:, 1:].flatten()
            sums = {"nll": F.cross_entropy(logits, targets, reduction="sum")}
            if not model.training:
                sums["accuracy"] = (logits.argmax(-1) == targets).sum()
            return sums

    class Untied(Gpt2):
        tied = False

    class Ragged(Gpt2):
        '''Sentences of unlike length.'''
        fields = {"words": hetseq.Ragged(torch.int64)}
        tokens, losses, metrics = "words", ["nll"], []
        weights = hetseq.tokens("words")
        def forward(self, model, batch):
            ids = batch["words"]
            keep = torch.arange(ids.shape[1], device=ids.device) < batch["words_lengths"][:, None]
            logits = model(input_ids=ids, attention_mask=keep.long()).logits
            return F.cross_entropy(logits[keep], ids[keep], reduction="sum")

    class Masks(Ragged):
        '''The first stage masks words, and the last one needs to know which.'''
        chain, recompute = "bert.encoder.layer", ["bert.encoder.layer.*"]
        def model(self, config):
            return BertForMaskedLM(BertConfig(vocab_size=50, hidden_size=32, num_hidden_layers=4, num_attention_heads=4,
                                              intermediate_size=64, max_position_embeddings=16, tie_word_embeddings=False))
        def forward(self, model, batch):
            ids = batch["words"]
            keep = torch.arange(ids.shape[1], device=ids.device) < batch["words_lengths"][:, None]
            hidden = keep & (torch.rand(ids.shape, device=ids.device) < 0.3)
            logits = model(input_ids=ids.masked_fill(hidden, 0), attention_mask=keep.long()).logits
            return F.cross_entropy(logits[hidden], ids[hidden], reduction="sum")

    class TimeFirst(Ragged):
        '''(time, samples, width), of which each stage must know.'''
        chain, recompute = "encoder.layers", ["encoder.layers.*"]
        class module(nn.Module):
            def __init__(self):
                super().__init__()
                self.table, self.drop, self.output = nn.Embedding(50, 16), nn.Dropout(0.1), nn.Linear(16, 50)
                self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 32, dropout=0.1), 3)
            def forward(self, ids, keep):
                x = self.encoder(self.drop(self.table(ids.T)), src_key_padding_mask=~keep)
                return self.output(x).transpose(0, 1)
        def model(self, config):
            return self.module()
        def forward(self, model, batch):
            ids = batch["words"]
            keep = torch.arange(ids.shape[1], device=ids.device) < batch["words_lengths"][:, None]
            return F.cross_entropy(model(ids, keep)[keep], ids[keep], reduction="sum")

    class Norms(hetseq.Task):
        '''Statistics of groups are recorded by the stage that has the module.'''
        fields = Gpt2.fields
        chain = "parts"
        class module(nn.Module):
            def __init__(self):
                super().__init__()
                self.table, self.norm = nn.Embedding(50, 8), nn.BatchNorm1d(8)
                self.parts = nn.ModuleList([nn.Sequential(nn.Conv1d(8, 8, 3), nn.BatchNorm1d(8), nn.Dropout(0.1))
                                            for _ in range(3)])
            def forward(self, ids):
                x = self.norm(self.table(ids).transpose(1, 2))
                for part in self.parts:
                    x = part(x)
                return x.mean(2)
        def model(self, config):
            return self.module()
        def forward(self, model, batch):
            return model(batch["ids"]).square().sum()

    class Layers(hetseq.Task):
        '''Two lists of layers with something between them, of which some write what they are given, as a VGG's.'''
        fields = Gpt2.fields
        chain = ["features", "classifier"]
        class module(nn.Module):
            def __init__(self):
                super().__init__()
                self.table = nn.Embedding(50, 8)
                self.features = nn.Sequential(nn.Conv1d(8, 8, 3), nn.BatchNorm1d(8), nn.ReLU(True), nn.MaxPool1d(2),
                                              nn.Conv1d(8, 8, 3), nn.ReLU(True))
                self.classifier = nn.Sequential(nn.Linear(40, 16), nn.ReLU(True), nn.Dropout(), nn.Linear(16, 4))
            def forward(self, ids):
                return self.classifier(torch.flatten(self.features(self.table(ids).transpose(1, 2)), 1))
        def model(self, config):
            return self.module()
        def forward(self, model, batch):
            return F.cross_entropy(model(batch["ids"]), batch["ids"][:, 0] % 4, reduction="sum")

    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return 2 * x
        @staticmethod
        def backward(ctx, gradient):
            return 2 * gradient

    class Functions(hetseq.Task):
        '''A function of one's own in a block that may be computed again.'''
        fields = Gpt2.fields
        chain, recompute = "parts", ["parts.*"]
        class part(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(8, 8)
            def forward(self, x):
                return Doubled.apply(self.layer(x))
        class module(nn.Module):
            def __init__(self, part):
                super().__init__()
                self.table, self.parts = nn.Embedding(50, 8), nn.ModuleList([part(), part()])
            def forward(self, ids):
                x = self.table(ids)
                for part in self.parts:
                    x = part(x)
                return x
        def model(self, config):
            return self.module(self.part)
        def forward(self, model, batch):
            return model(batch["ids"]).square().sum() / 1000

    class Shares(Gpt2):
        '''Cannot be cut.'''
        def forward(self, model, batch):
            made = model(input_ids=batch["ids"], output_hidden_states=True)
            return {"nll": made.hidden_states[1].square().sum() + made.logits.square().sum(), "accuracy": torch.zeros(())}

    class NoChain(Gpt2):
        chain = ()

    class Mean(Gpt2):
        '''The self-test refuses it.'''
        def forward(self, model, batch):
            return {name: value / len(batch["ids"]) for name, value in super().forward(model, batch).items()}
"""


class PipelineTest(Case):
    def setUp(self):
        super().setUp()
        self.write("tasks.py", TASKS)
        draw = np.random.default_rng(2)
        lengths = draw.integers(2, 16, 96)
        with h5py.File(self.folder / "ids.h5", "w") as file:
            file["ids"] = draw.integers(0, 50, (96, 16))
        with h5py.File(self.folder / "words.h5", "w") as file:
            file["words"] = draw.integers(0, 50, lengths.sum())
            file["words_offsets"] = np.concatenate([[0], np.cumsum(lengths)])

    def train(self, task, ranks, units, *words, data="ids.h5", workers="", sentences=8, code=0):
        """Five updates of 32 samples by 8; on several ranks as a pipeline, or as `workers`. The folder has the name of task and
        units."""
        workers = workers or ("none" if ranks == 1 else "+".join(map(str, range(ranks))))
        cut = [] if workers == "none" else ["--stage-units", units]
        return self.hetseq(ranks, "train", f"tasks.py:{task}", "--data", data, "--batch-size", 32, "--max-sentences", sentences,
                           "--max-update", 5, "--lr", 0.1, "--optimizer", "sgd", "--norm-group", 8, "--balance", "declared",
                           "--log-interval", 1, "--threads", 1, *words, "--virtual-workers", workers, *cut,
                           "--save-dir", f"{task}-{units}", code=code)

    def model(self, run):
        return (self.folder / run / "model.safetensors").read_bytes()

    def lines(self, run):
        """What metrics.jsonl says of losses and metrics."""
        lines = map(json.loads, (self.folder / run / "metrics.jsonl").read_text().splitlines())
        return [{key: line[key] for key in ("kind", "update", "nll", "accuracy", "loss") if key in line} for line in lines]

    def difference(self, a, b):
        return largest_difference(self.folder / a / "model.safetensors", self.folder / b / "model.safetensors")

    def test_stages_train_what_one_rank_trains(self):
        self.train("Untied", 1, "whole", "--valid-data", "ids.h5")
        for ranks, units in ((2, "3+3"), (3, "1+4+1")):
            self.train("Untied", ranks, units, "--valid-data", "ids.h5", "--recompute", "all" if ranks == 3 else "none")
            self.assertEqual(self.model(f"Untied-{units}"), self.model("Untied-whole"))
            self.assertEqual(self.lines(f"Untied-{units}"), self.lines("Untied-whole"))

    def test_planned_micro_batches_hold_whole_groups(self):
        text = self.train("Norms", 2, "auto", sentences=32)
        self.assertGreaterEqual(int(re.search(r"micro-batches of (\d+) samples", text)[1]), 8, text)

    def test_tied_parameters_and_rows_of_unequal_length(self):
        self.train("Ragged", 1, "whole", data="words.h5")
        self.train("Ragged", 3, "2+3+1", data="words.h5")
        self.assertLess(self.difference("Ragged-2+3+1", "Ragged-whole"), 1e-6)

    def test_words_that_the_forward_masks(self):
        self.train("Masks", 1, "whole", data="words.h5")
        self.train("Masks", 3, "1+3+2", data="words.h5")
        self.assertEqual(self.model("Masks-1+3+2"), self.model("Masks-whole"))

    def test_samples_in_another_dimension(self):
        self.train("TimeFirst", 1, "whole", data="words.h5")
        self.train("TimeFirst", 3, "1+2+2", "--recompute", "all", data="words.h5")
        self.assertEqual(self.model("TimeFirst-1+2+2"), self.model("TimeFirst-whole"))

    def test_batch_normalisation_by_groups(self):
        self.train("Norms", 1, "whole")
        self.train("Norms", 2, "2+3")
        self.assertLess(self.difference("Norms-2+3", "Norms-whole"), 1e-6)
        self.assertGreater(tensors(self.folder / "Norms-2+3/model.safetensors")["norm.running_mean"].abs().max(), 0)

    def test_workers_train_what_whole_replicas_of_the_same_shares_train(self):
        self.train("Layers", 1, "whole")
        self.train("Layers", 2, "halves", workers="none")
        self.train("Layers", 2, "quarters", workers="none", sentences="0=8,1=24")
        self.train("Layers", 4, "3+9,8+4", workers="0+1,2+3")
        self.train("Layers", 4, "4+5+3,12", workers="0+1+2,3")
        self.train("Layers", 4, "8+4,3+9", workers="0+1,2+3", sentences="0=8,1=8,2=24,3=24")
        self.assertEqual(self.model("Layers-3+9,8+4"), self.model("Layers-halves"))
        self.assertEqual(self.model("Layers-4+5+3,12"), self.model("Layers-halves"))
        self.assertEqual(self.model("Layers-8+4,3+9"), self.model("Layers-quarters"))
        self.assertLess(self.difference("Layers-8+4,3+9", "Layers-whole"), 1e-6)

    def test_stages_that_are_measured(self):
        out = self.train("Gpt2", 2, "auto")
        self.assertIn("GPT2Block", out)
        # Functions in Python, the user's and those of recomputation.
        self.train("Functions", 1, "whole")
        self.train("Functions", 2, "auto", "--recompute", "all")
        self.assertLess(self.difference("Functions-auto", "Functions-whole"), 1e-6)

    def test_a_module_that_a_script_made_comes_back_whole(self):
        self.run_ranks(2, self.write("script.py", """
            import hetseq, tasks, torch
            torch.manual_seed(3)
            gpt2 = tasks.Gpt2()
            module = gpt2.model(None)
            task = hetseq.task(module, gpt2.fields, lambda model, batch: gpt2.forward(model, batch)["nll"],
                               chain="transformer.h")
            trained = hetseq.train(task, data="ids.h5", max_update=2, lr=1e-4, optimizer="sgd", batch_size=32, virtual_workers="0+1",
                                   stage_units="3+3", save_dir="given")
            assert trained is module
            stored = hetseq.models.read_tensors("given/model.safetensors")
            for name, parameter in module.named_parameters():
                assert torch.equal(parameter, stored[name]) and parameter.abs().sum() > 0, name
            if hetseq.rank() == 0:
                first = hetseq.models.read_tensors("given/model.safetensors")["transformer.wpe.weight"]
                torch.manual_seed(3)
                start = gpt2.model(None).transformer.wpe.weight
                assert 0 < (first - start).abs().max() < 0.01, "it began with other values"
        """))

    def test_what_cannot_be(self):
        out = self.train("Shares", 2, "3+3", code=78)
        self.assertIn("more is needed than the last hidden state", out)
        out = self.train("Mean", 2, "3+3", code=78)
        self.assertIn("the result would depend on how a batch is cut over ranks", out)
        out = self.train("NoChain", 2, "3+3", code=78)
        self.assertIn("tasks in Python that name their blocks (chain)", out)


if __name__ == "__main__":
    unittest.main(verbosity=2)
