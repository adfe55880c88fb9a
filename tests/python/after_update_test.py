"""What changes once an update: a task's `after_update` with its sums over the batch, and spectral norms."""

import unittest

from harness import Case, capacities, largest_difference, need, tensors

need("torch", "numpy", "h5py", "safetensors")

import h5py
import numpy as np
import torch

SAMPLES, UPDATES, RATE = 64, 5, 0.05  # all samples are a batch

# The modules are those of the reference too, which trains them in plain PyTorch, a whole batch at once.
MODULES = '''
import copy
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import parametrizations, spectral_norm


class MeanTeacher(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))
        self.teacher = copy.deepcopy(self.net).requires_grad_(False)
        self.register_buffer("updates", torch.zeros(()))

    def loss(self, x, y):
        scores = self.net(x)
        return F.cross_entropy(scores, y, reduction="sum") + (scores - self.teacher(x)).square().sum()

    def after_update(self, sums):
        self.updates += 1
        for mean, own in zip(self.teacher.parameters(), self.net.parameters()):
            mean.lerp_(own, 0.3)


class Codebook(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode, self.decode = nn.Linear(6, 4), nn.Linear(4, 6)
        for name, value in (("codes", torch.randn(5, 4)), ("count", torch.ones(5)), ("total", torch.randn(5, 4))):
            self.register_buffer(name, value)

    def loss(self, x, y, add=None):
        z = self.encode(x)
        nearest = F.one_hot(torch.cdist(z, self.codes).argmin(1), 5).to(z.dtype)
        if self.training:
            sums = {"count": nearest.sum(0), "total": nearest.T @ z}
            (add or self.keep)(sums)
        q = nearest @ self.codes
        return (self.decode(z + (q - z).detach()) - x).square().sum() + 0.25 * (z - q).square().sum()

    def keep(self, sums):
        self.kept = sums

    def after_update(self, sums):
        sums = sums or self.kept
        self.count.lerp_(sums["count"], 0.2)
        self.total.lerp_(sums["total"].detach(), 0.2)
        self.codes.copy_(self.total / self.count.clamp(min=1e-5)[:, None])


class Spectral(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = parametrizations.spectral_norm(nn.Linear(6, 8), n_power_iterations=2)
        self.second = spectral_norm(nn.Conv1d(1, 2, 3))
        self.last = nn.Linear(12, 3)

    def loss(self, x, y):
        return F.cross_entropy(self.last(self.second(self.first(x)[:, None]).tanh().flatten(1)), y, reduction="sum")

    def after_update(self, sums):
        pass
'''
TASKS = '''
import os

import hetseq, modules, torch


class Base(hetseq.Task):
    fields = {"x": hetseq.Field(torch.float64, (6,)), "y": hetseq.Field(torch.int64)}

    def model(self, config):
        return getattr(modules, type(self).__name__)()

    def forward(self, model, batch):
        return model.loss(batch["x"].to(next(model.parameters()).dtype), batch["y"])


class MeanTeacher(Base):
    def after_update(self, model, sums):
        assert not torch.is_grad_enabled() and not sums
        model.after_update(sums)


class Codebook(Base):
    batch_sums = {"count": (5,), "total": (5, 4)}

    def forward(self, model, batch):
        def add(sums):
            for name, value in sums.items():
                hetseq.add_to_batch_sum(name, value)
        return model.loss(batch["x"].to(model.codes.dtype), batch["y"], add)

    def after_update(self, model, sums):
        model.after_update(sums)


class Spectral(Base):
    pass


class Twice(Codebook):
    """Halves of a sum."""
    def model(self, config):
        return modules.Codebook()

    def forward(self, model, batch):
        def add(sums):
            for name, value in [*sums.items(), *sums.items()]:
                hetseq.add_to_batch_sum(name, value / 2)
        return model.loss(batch["x"].to(model.codes.dtype), batch["y"], add)


class Means(Codebook):
    def model(self, config):
        return modules.Codebook()

    def forward(self, model, batch):
        def add(sums):
            hetseq.add_to_batch_sum("count", sums["count"] / len(batch["x"]))
        return model.loss(batch["x"].to(model.codes.dtype), batch["y"], add)


class Unknown(Means):
    def forward(self, model, batch):
        def add(sums):
            hetseq.add_to_batch_sum("counts", sums["count"])
        return model.loss(batch["x"].to(model.codes.dtype), batch["y"], add)


class Misshapen(Means):
    def forward(self, model, batch):
        def add(sums):
            hetseq.add_to_batch_sum("count", sums["total"])
        return model.loss(batch["x"].to(model.codes.dtype), batch["y"], add)


class Numbers(MeanTeacher):
    """A buffer that is replaced, a sum that is a number, and one that is seldom added."""
    batch_sums = {"samples": (), "many": ()}

    def model(self, config):
        return modules.MeanTeacher()

    def forward(self, model, batch):
        if model.training:
            hetseq.add_to_batch_sum("samples", len(batch["x"]))
        if model.training and len(batch["x"]) > 1000:
            hetseq.add_to_batch_sum("many", 1)
        return super().forward(model, batch)

    def after_update(self, model, sums):
        model.updates = model.updates + sums["samples"] + sums["many"]


class Draws(Numbers):
    def after_update(self, model, sums):
        model.updates += torch.rand(())


class Masked(Numbers):
    """With constants that are no numbers."""

    def model(self, config):
        model = modules.MeanTeacher()
        model.register_buffer("mask", torch.full((3, 3), -torch.inf).triu(1))
        model.register_buffer("gap", torch.full((2,), torch.nan))
        return model


class ByRank(Masked):
    """No rank may come to other values."""

    def after_update(self, model, sums):
        model.updates += 1 + int(os.environ["OMPI_COMM_WORLD_RANK"])


class NotFinite(MeanTeacher):
    """In the second update."""

    def model(self, config):
        return modules.MeanTeacher()

    def written(self, model):
        return model.net[2].bias

    def after_update(self, model, sums):
        model.updates += 1
        if model.updates == 2:
            self.written(model)[1] = torch.nan


class FrozenNotFinite(NotFinite):
    def written(self, model):
        return model.teacher[0].weight


class Hidden(Numbers):
    def model(self, config):
        model = modules.MeanTeacher()
        model.register_buffer("hidden", torch.zeros(()), persistent=False)
        return model

    def after_update(self, model, sums):
        model.hidden += 1


class Reshapes(Numbers):
    def after_update(self, model, sums):
        model.updates = torch.zeros(3)


class Adds(Numbers):
    def after_update(self, model, sums):
        model.register_buffer("more", torch.zeros(()))


class Sometimes(Numbers):
    def forward(self, model, batch):
        if len(batch["x"]) > 3:
            hetseq.add_to_batch_sum("many", 1)
        return super().forward(model, batch)


class Words(Numbers):
    def forward(self, model, batch):
        hetseq.add_to_batch_sum("samples", "ten")
        return super().forward(model, batch)


class Seen(MeanTeacher):
    """Rank 0's, replaced in each forward."""
    buffers = "rank0"

    def model(self, config):
        return modules.MeanTeacher()

    def forward(self, model, batch):
        if model.training:
            model.updates = model.updates + 1
        return super().forward(model, batch)

    def after_update(self, model, sums):
        pass


class InForward(MeanTeacher):
    def model(self, config):
        return modules.MeanTeacher()

    def forward(self, model, batch):
        if model.training:
            model.updates += 1
        return super().forward(model, batch) + 0 * model.updates
'''


class AfterUpdateTest(Case):
    def setUp(self):
        super().setUp()
        draw = np.random.default_rng(5)
        self.x, self.y = draw.normal(size=(SAMPLES, 6)), draw.integers(0, 3, SAMPLES)
        with h5py.File(self.folder / "data.h5", "w") as file:
            file["x"], file["y"] = self.x, self.y
        self.write("modules.py", MODULES)
        self.write("tasks.py", TASKS)

    def train(self, task, ranks, name, *words, code=0, updates=UPDATES, sentences=None, lr=RATE, optimizer="sgd"):
        return self.hetseq(ranks, "train", f"tasks.py:{task}", "--data", "data.h5", "--batch-size", SAMPLES, "--max-sentences",
                           sentences or self.sentences(ranks), "--balance", "declared", "--optimizer", optimizer, "--lr", lr,
                           "--precision", "fp64", "--threads", 1, "--max-update", updates, *words, "--save-dir", name, code=code)

    def sentences(self, ranks):
        return 64 if ranks == 1 else capacities(7, 57, 0)

    def train_all(self, ranks, *runs):
        """The same for several runs (task, folder, options of hetseq.train), one after the other in one process a rank. How each
        ended is told: `NAME: its exit code and message`."""
        defaults = {"data": "data.h5", "batch_size": SAMPLES, "max_sentences": self.sentences(ranks), "balance": "declared",
                    "optimizer": "sgd", "lr": RATE, "precision": "fp64", "threads": 1, "max_update": UPDATES}
        return self.run_ranks(ranks, self.write("script.py", f"""
            import hetseq, tasks
            for task, name, options in {runs!r}:
                told = "0"
                try:
                    hetseq.train(getattr(tasks, task)(), **{{**{defaults!r}, **options, "save_dir": name}})
                except hetseq.Stopped as stopped:
                    told = str(stopped.code)
                except hetseq.Error as error:
                    told = f"{{error.code}} " + str(error).replace("\\n", " ")
                if hetseq.rank() == 0:
                    print(f"\\n{{name}}: {{told}}", flush=True)
        """))

    def expect_all(self, ranks, *runs):
        """All these runs end well."""
        told = self.train_all(ranks, *runs)
        for _, name, _ in runs:
            self.assertRegex(told, f"(?m)^{name}: 0$")
        return told

    def model(self, run):
        return (self.folder / run / "model.safetensors").read_bytes()

    def test_one_rank_and_ranks_of_7_57_and_0_samples_agree(self):
        tasks = ("MeanTeacher", "Codebook", "Spectral")
        # Twice: micro-batches, and both halves of a sum.
        self.expect_all(1, *((task, f"{task}-1", {}) for task in tasks), ("Twice", "small", {"max_sentences": 5}))
        self.expect_all(3, *((task, f"{task}-3", {}) for task in tasks))
        for task in tasks:
            self.assert_near(task, 1e-12)
        self.assertLess(largest_difference(self.folder / "small/model.safetensors", self.folder / "Codebook-1/model.safetensors"), 1e-12)
        teacher = tensors(self.folder / "MeanTeacher-3/model.safetensors")
        self.assertEqual(teacher["updates"].item(), UPDATES)

    def test_what_pytorch_makes_of_whole_batches(self):
        scope = {}
        exec(MODULES, scope)
        x, y = torch.tensor(self.x), torch.tensor(self.y)
        for task in ("MeanTeacher", "Codebook", "Spectral"):
            with self.subTest(task):
                self.expect_all(1, (task, f"{task}-0", {"max_update": 1, "lr": 0}), (task, f"{task}-on", {"init_model": f"{task}-0"}))
                module = scope[task]()  # into which --init-model reads in fp32
                module.load_state_dict(tensors(self.folder / f"{task}-0/model.safetensors"))
                module.double()
                optimizer = torch.optim.SGD([p for p in module.parameters() if p.requires_grad], lr=RATE)
                for update in range(UPDATES):
                    optimizer.zero_grad()
                    # The first forward takes the estimates of spectral norms as they are.
                    (module.train(task != "Spectral" or update > 0).loss(x, y) / SAMPLES).backward()
                    optimizer.step()
                    with torch.no_grad():
                        module.after_update({})
                trained = tensors(self.folder / f"{task}-on/model.safetensors")
                for name, value in module.state_dict().items():
                    if not name.endswith(("_u", "_v")):  # whose next step hetseq has made
                        self.assertLess((trained[name] - value).abs().max().item(), 1e-12, name)

    def test_a_run_that_goes_on(self):
        for task in ("MeanTeacher", "Codebook", "Spectral"):
            told = self.train_all(1, (task, "whole-" + task, {}), (task, "parts-" + task, {"stop_after": 2}))
            self.assertRegex(told, f"(?m)^whole-{task}: 0$")
            self.assertRegex(told, f"(?m)^parts-{task}: 75$")
            self.expect_all(1, (task, "parts-" + task, {}))  # in another process
            self.assertEqual(self.model("parts-" + task), self.model("whole-" + task))

    def test_a_buffer_that_is_replaced_is_saved(self):
        self.train("Numbers", 3, "numbers")
        self.assertEqual(tensors(self.folder / "numbers/model.safetensors")["updates"].item(), UPDATES * SAMPLES)
        self.train("Seen", 1, "seen")
        self.assertGreaterEqual(tensors(self.folder / "seen/model.safetensors")["updates"].item(), UPDATES)

    def test_where_ranks_step_parts_of_the_values(self):
        tasks = ("MeanTeacher", "Spectral")
        self.expect_all(1, *((task, f"{task}-1", {"optimizer": "adamw"}) for task in tasks))
        self.expect_all(3, *((task, f"{task}-3", {"optimizer": "adamw", "shard": "optimizer"}) for task in tasks))
        for task in tasks:
            self.assert_near(task, 1e-12)

    def test_ranks_that_come_to_other_values_are_told(self):
        said = "models drift apart: those of rank 1, 2 differ .* up to 2 .*in 'updates'"
        self.assertRegex(self.train("ByRank", 3, "by-rank", "--drift", "abort", code=70), said)
        self.assertNotIn("drift apart", self.expect_all(3, *(
            (task, "like-" + task, {"drift": "abort"}) for task in ("MeanTeacher", "Spectral", "Masked", "Seen"))))

    def test_parameters_that_are_not_finite_end_the_run(self):
        said = r"(?s)update 5: skipped.*no update can be applied any more \(the parameter {} holds values that are not finite"
        for ranks, task, name in ((1, "NotFinite", r"net\.2\.bias"), (3, "FrozenNotFinite", r"teacher\.0\.weight")):
            self.assertRegex(self.train(task, ranks, task, code=65), said.format(name))
        # Where the run ends before that, it says so, and a run that goes on from there names them.
        self.assertRegex(self.train("NotFinite", 1, "short", updates=2), r"the parameter net\.2\.bias of the model that is kept holds")
        self.assertRegex(self.train("NotFinite", 1, "short", code=78), r"begins with values that are not finite in .*net\.2\.bias")

    def test_what_cannot_be(self):
        refusals = {
            "Means": "batch sum count is a mean over the samples: give hetseq.add_to_batch_sum the sum",
            "Draws": "after_update draws random numbers",
            "Hidden": "after_update changed the buffer 'hidden', which is not saved",
            "Reshapes": "the buffer 'updates' was removed, or has another shape",
            "Adds": "a buffer was added after the training began",
            "Sometimes": "batch sum many",
            "Words": "got a str for 'samples'",
            "Unknown": "was given 'counts', which the task's batch_sums do not name",
            "Misshapen": r"got a tensor of shape \(5, 4\) for 'count', whose shape in batch_sums is \(5,\)",
            "InForward": "the buffer updates changed in training .*after_update",
        }
        told = self.train_all(1, *((task, "refused-" + task, {}) for task in refusals))
        for task, said in refusals.items():
            with self.subTest(task):
                self.assertRegex(told, f"(?m)^refused-{task}: 78 .*{said}")


if __name__ == "__main__":
    unittest.main(verbosity=2)
