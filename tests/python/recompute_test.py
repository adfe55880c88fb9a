"""Modules that backward computes again (Task.recompute): the same bits."""

import json
import unittest

from harness import Case, capacities, need

need("torch", "torch._dynamo", "numpy", "h5py", "safetensors", "transformers")

import h5py
import numpy as np

TASKS = """
    import torch, hetseq
    from torch import nn
    from torch.nn import functional as F
    from transformers import GPT2Config, GPT2LMHeadModel

    SIZES = dict(vocab_size=50, n_positions=16, n_embd=32, n_layer=3, n_head=4)

    class Gpt2(hetseq.Task):
        fields = {"ids": hetseq.Field(torch.int64, (16,))}
        losses = ["nll"]
        recompute = ["transformer.h.*"]
        def model(self, config):
            return GPT2LMHeadModel(GPT2Config(**SIZES))
        def weights(self, batch):
            return batch["ids"][:, 1:].numel()
        def forward(self, model, batch):
            logits = model(input_ids=batch["ids"]).logits[:, :-1]
            return F.cross_entropy(logits.flatten(0, 1), batch["ids"][:, 1:].flatten(), reduction="sum")

    class Small(Gpt2):
        def model(self, config):
            return GPT2LMHeadModel(GPT2Config(**{**SIZES, "n_layer": 2}))

    class CompiledParts(Small):
        def model(self, config):
            model = super().model(config)
            for index in range(len(model.transformer.h)):
                model.transformer.h[index] = torch.compile(model.transformer.h[index], backend="aot_eager")
            return model

    class Ids(hetseq.Task):
        fields = Gpt2.fields
        recompute = ["parts.*"]
        def model(self, config):
            return self.module()
        def forward(self, model, batch):
            return model(batch["ids"]).square().sum()

    class Names(Ids):
        '''Arguments with the names that checkpoint has for its own.'''
        class module(nn.Module):
            class Part(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.linear = nn.Linear(8, 8)
                def forward(self, x, *, debug=1.0, function=1.0, state=1.0, use_reentrant=1.0):
                    return F.dropout(self.linear(x), 0.1) * debug * function * state * use_reentrant
            def __init__(self):
                super().__init__()
                self.table = nn.Embedding(50, 8)
                self.parts = nn.ModuleList([self.Part()])
            def forward(self, ids):
                return self.parts[0](self.table(ids), debug=2.0, function=0.5, state=3.0, use_reentrant=0.25).mean(1)

    class Shared(Ids):
        '''One module twice, which gives a tuple, draws, and takes its second input by name; and a frozen one.'''
        class module(nn.Module):
            class Part(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.linear = nn.Linear(8, 8)
                def forward(self, x, scale=None):
                    return torch.tanh(self.linear(x)) * scale + 0.1 * torch.randn_like(x), scale
            def __init__(self):
                super().__init__()
                self.table = nn.Embedding(50, 8)
                self.parts = nn.ModuleList([self.Part(), self.Part()])
                self.parts[1].requires_grad_(False)
            def forward(self, ids):
                x = self.table(ids)
                for part in (self.parts[0], self.parts[1], self.parts[0]):
                    x, _ = part(x, scale=torch.tensor(0.5, dtype=x.dtype))
                return F.dropout(x, 0.2, self.training).mean(1)

    class Compiled(Shared):
        '''The whole model, one of few modules: of GPT-2, torch would trace sixty functions.'''
        def model(self, config):
            return torch.compile(super().model(config), backend="aot_eager")

    class Norms(Ids):
        '''Statistics of groups are taken in once.'''
        class module(nn.Module):
            def __init__(self):
                super().__init__()
                self.table = nn.Embedding(50, 8)
                self.parts = nn.ModuleList([nn.Sequential(nn.Conv1d(8, 8, 3), nn.BatchNorm1d(8), nn.Dropout(0.1))
                                            for _ in range(2)])
            def forward(self, ids):
                x = self.table(ids).transpose(1, 2)
                for part in self.parts:
                    x = part(x)
                return x.mean(2)
"""
BATCH = 32


class RecomputeTest(Case):
    def setUp(self):
        super().setUp()
        self.write("tasks.py", TASKS)
        with h5py.File(self.folder / "ids.h5", "w") as file:
            file["ids"] = np.random.default_rng(2).integers(0, 50, (96, 16))

    def train(self, task, counts, ranks=1, **options):
        """Runs TASK-i for each of `counts`, values of --recompute."""
        options = dict(data="ids.h5", batch_size=BATCH, max_update=4, lr=1e-2, norm_group=8, balance="declared", **options)
        self.run_ranks(ranks, self.write("script.py", f"""
            import hetseq, tasks
            for i, count in enumerate({list(counts)}):
                task = tasks.{task}()
                task.self_test = count != "none"  # other tests' matter
                hetseq.train(task, save_dir=f"{task}-{{i}}", recompute=count, **{options})
        """))

    def layers(self, run):
        return [rank["recomputed_layers"] for rank in json.loads((self.folder / run / "summary.json").read_text())["ranks"]]

    def model(self, run):
        return (self.folder / run / "model.safetensors").read_bytes()

    def expect_same(self, task, most, **options):
        """With none, the first and all of the modules recomputed, as far as these differ."""
        counts = ["none", *(["1"] if most > 2 else []), "all"]
        self.train(task, counts, **options)
        for i, count in enumerate(counts[1:], 1):
            self.assertEqual(self.layers(f"{task}-{i}"), [most if count == "all" else 1])
            self.assertEqual(self.model(f"{task}-0"), self.model(f"{task}-{i}"), f"{task} {count}")

    def test_a_model_of_transformers(self):
        self.expect_same("Gpt2", 3)

    def test_in_16_bits(self):
        self.expect_same("Small", 2, precision="bf16")

    def test_compiled(self):
        self.expect_same("Compiled", 2)
        self.expect_same("CompiledParts", 2)

    def test_a_module_that_runs_twice_and_one_that_is_frozen(self):
        self.expect_same("Shared", 2)

    def test_names_of_arguments(self):
        self.expect_same("Names", 1)

    def test_a_module_that_changes_what_it_is_given_or_holds(self):
        out = self.run_ranks(1, self.write("changing.py", """
            import hetseq, tasks, torch
            from torch import nn
            class Part(nn.Module):
                def __init__(self, change):
                    super().__init__()
                    self.linear, self.change, self.calls = nn.Linear(8, 8), change, 0
                    self.register_buffer("seen", torch.zeros(()))
                def forward(self, given):
                    return self.change(self, given, self.linear(given["x"]))
            def puts(part, given, y):
                given["x"] = y
                return y
            def appends(part, given, y):
                given["all"].append(y)
                return y
            def scales(part, given, y):
                given["all"][0].mul_(1)
                return y
            def counts(part, given, y):
                part.calls += 1
                return y
            def notes(part, given, y):
                part.seen += 1
                return y
            class Model(nn.Module):
                def __init__(self, change):
                    super().__init__()
                    self.table, self.parts = nn.Embedding(50, 8), nn.ModuleList([Part(change)])
                def forward(self, ids):
                    x = self.table(ids)
                    return self.parts[0]({"x": x, "all": [x * 2]}).mean(1)
            for change in (puts, appends, scales, counts, notes):
                for count in ("none", "all"):
                    class Changing(tasks.Ids):
                        buffers, self_test = "rank0", False
                        def model(self, config):
                            return Model(change)
                    try:
                        hetseq.train(Changing(), data="ids.h5", max_update=1, recompute=count)
                    except hetseq.Error as error:
                        print("REFUSED", str(error).replace("\\n", " "))
        """))
        refused = [line for line in out.splitlines() if line.startswith("REFUSED")]
        wanted = ["what it is given"] * 6 + ["a number of its own"] * 2 + ["a buffer of its own"] * 2
        for line, what in zip(refused, wanted, strict=True):
            self.assertIn(f"recompute names 'parts.0', which changes {what}", line)

    def test_batch_normalisation(self):
        self.expect_same("Norms", 2)

    def test_ranks_that_recompute_and_others(self):
        self.train("Gpt2", ["none", "0=all,1=2,2=none"], ranks=3, max_sentences=capacities(7, 25, 0))
        self.assertEqual(self.layers("Gpt2-1"), [3, 2, 0])
        self.assertEqual(self.model("Gpt2-0"), self.model("Gpt2-1"))

    def test_memory_that_runs_out(self):
        self.write("short.py", """
            import torch
            import tasks
            class Short(tasks.Gpt2):
                '''A block holds nothing for backward, as where memory is full.'''
                def model(self, config):
                    model = super().model(config)
                    def refuse(module, given):
                        if torch.is_grad_enabled() and given[0].requires_grad and model.training and not tasks.again(module):
                            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")
                    model.transformer.h[1].register_forward_pre_hook(refuse)
                    return model
        """)
        with open(self.folder / "tasks.py", "a") as file:
            file.write("\ndef again(module):\n    return getattr(vars(module)['forward'], 'again', False)\n")
        words = ["train", "short.py:Short", "--data", "ids.h5", "--batch-size", BATCH, "--max-update", 4, "--lr", 1e-2,
                 "--balance", "declared"]
        out = self.hetseq(1, *words, "--save-dir", "short")
        self.assertIn("out of memory: backward computes 3 layers again from now on "
                      "(torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB)", out)
        self.assertEqual(self.layers("short"), [3])
        self.assertIn("--recompute all", self.hetseq(1, *words, "--save-dir", "none", "--recompute", "none", code=71))

    def test_what_cannot_be(self):
        out = self.run_ranks(1, self.write("wrong.py", """
            import hetseq, tasks
            for names in (["transformer.x.*"], ["transformer.h"], ["transformer.h.*", "transformer.*.1.mlp"],
                          "transformer.h.*", []):
                task = tasks.Gpt2()
                task.recompute = names
                try:
                    hetseq.train(task, data="ids.h5", max_update=1, recompute="all")
                except hetseq.Error as error:
                    print("REFUSED", str(error).replace("\\n", " "))
        """))
        refused = [line for line in out.splitlines() if line.startswith("REFUSED")]
        for line, problem in zip(refused, ("fits no module", "has no forward", "is a part of it", "give a list",
                                           "no layers to compute again"), strict=True):
            self.assertIn(problem, line)


if __name__ == "__main__":
    unittest.main(verbosity=2)
