"""PyTorch's optimizers and schedules of a task's own."""

import json
import re
import textwrap
import unittest

from harness import LINEAR, Case, need, tensors

need("torch", "torch._dynamo", "numpy", "h5py", "safetensors")

import h5py
import numpy as np
import torch

SAMPLES = 24

TASK = LINEAR + """
    from torch.nn import functional as F

    class OwnSchedule(Linear):
        def schedule(self, update, epoch, config):
            return 0.1 / (update + 1)
"""
OWN = """
    class Freeing(torch.optim.SGD):
        def step(self, closure=None):
            super().step(closure)
            self.zero_grad()

    class Replacing(torch.optim.SGD):
        def step(self, closure=None):
            for group in self.param_groups:
                for parameter in group["params"]:
                    parameter.grad = parameter.grad / (1 + parameter.grad.norm())
            super().step(closure)
"""
exec(textwrap.dedent(OWN))
OPTIMIZERS = {
    "Frees": "Freeing(groups, lr=lr)",
    "Replaces": "Replacing(groups, lr=lr, momentum=0.9)",
    "RAdam": "torch.optim.RAdam(groups, lr=lr)",                                    # tensors
    "Rprop": "torch.optim.Rprop(groups, lr=lr)",                                    # state that begins with the rate
    "Momentum": "torch.optim.SGD(groups, lr=lr, momentum=0.9, nesterov=True)",      # state that is None without momentum
    "Adagrad": "torch.optim.Adagrad(groups, lr=lr, initial_accumulator_value=0.5)"  # state before the first step
}


SCHEDULERS = {
    "Lambda": "scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step))",
    "Cosine": "scheduler.CosineAnnealingLR(optimizer, T_max=9, eta_min=0.001)",  # each rate from the one before
    "Sequential": "scheduler.SequentialLR(optimizer, [scheduler.LinearLR(optimizer, 0.1, total_iters=3), "
                  "scheduler.ExponentialLR(optimizer, 0.8)], milestones=[3])",
    "OneCycle": "scheduler.OneCycleLR(optimizer, max_lr=0.05, total_steps=12)"   # it changes the momentum too
}


class OptimizerTest(Case):
    def setUp(self):
        super().setUp()
        draw = np.random.default_rng(5)
        self.x, self.y = draw.normal(size=(SAMPLES, 5)), draw.normal(size=SAMPLES)
        with h5py.File(self.folder / "data.h5", "w") as file:
            file["x"], file["y"] = self.x, self.y
        classes = "".join(f"""
    class {name}(Linear):
        def optimizer(self, groups, lr):
            return {call}
""" for name, call in OPTIMIZERS.items())
        classes += "".join(f"""
    class {name}(Linear):
        def param_groups(self, model):
            return [{{"params": [model.bias], "lr_factor": 0.5, "decay": False}}]
        def optimizer(self, groups, lr):
            scheduler = torch.optim.lr_scheduler
            optimizer = torch.optim.SGD(groups, lr=lr, momentum=0.9)
            return optimizer, {call}
""" for name, call in SCHEDULERS.items())
        self.write("tasks.py", TASK + OWN + classes)

    def train(self, ranks, updates, names, **options):
        """Trains the tasks of these names, each in a folder of its name, in one process a rank."""
        self.run_ranks(ranks, self.write("script.py", f"""
            import hetseq, tasks
            for name in {names!r}:
                hetseq.train(getattr(tasks, name)(), data="data.h5", precision="fp64", lr=0.02, batch_size={SAMPLES},
                             max_update={updates}, save_dir=name, balance="declared", **{options!r})
        """))

    def torch_model(self, optimizer, rate, updates):
        torch.manual_seed(1)
        model = torch.nn.Linear(5, 1).double()
        optimizer = optimizer([{"params": [model.weight]}, {"params": [model.bias], "weight_decay": 0.0}])
        x, y = torch.tensor(self.x), torch.tensor(self.y)
        for update in range(updates):
            for group in optimizer.param_groups:
                group["lr"] = rate(update)
            optimizer.zero_grad()
            ((model(x).squeeze(1) - y).square().sum() / SAMPLES).backward()
            optimizer.step()
        return model

    def check(self, run, model):
        trained = tensors(self.folder / run / "model.safetensors")
        for name, value in model.state_dict().items():
            self.assertLess((trained[name] - value).abs().max().item(), 1e-12, name)

    def test_torchs_optimizers_do_as_in_pytorch_and_continue_from_checkpoints(self):
        self.train(1, 3, list(OPTIMIZERS))
        self.train(2, 7, list(OPTIMIZERS), max_sentences={"0": 5, "1": 9})
        for name, call in OPTIMIZERS.items():
            with self.subTest(name):
                self.check(name, self.torch_model(eval(f"lambda groups, lr=0.02: {call}"), lambda update: 0.02, 7))

    def test_a_schedule_of_its_own(self):
        self.train(1, 6, ["OwnSchedule"], optimizer="sgd")
        self.check("OwnSchedule", self.torch_model(lambda groups: torch.optim.SGD(groups, lr=0.1), lambda u: 0.1 / (u + 1),
                                                   6))

    def test_a_schedule_that_gives_no_rate_is_told_by_name(self):
        self.write("wrong.py", """
            import tasks
            class None_(tasks.Linear):
                def schedule(self, update, epoch, config):
                    if update < 2:
                        return 0.01
            class Nan(tasks.Linear):
                def schedule(self, update, epoch, config):
                    return float("nan") if update == 1 else 0.01
            class Negative(tasks.Linear):
                def schedule(self, update, epoch, config):
                    return -1.0
        """)
        script = self.write("train_wrong.py", f"""
            import sys, hetseq, wrong
            hetseq.train(getattr(wrong, sys.argv[1])(), data="data.h5", batch_size={SAMPLES}, max_update=4, cache_dir="none")
        """)
        for name, problem in (("None_", r"schedule\(2, \d\) gave a NoneType: give a learning rate"),
                              ("Nan", r"schedule\(1, \d\) gave nan: give a learning rate"),
                              ("Negative", r"schedule\(0, \d\) gave -1: give a learning rate")):
            with self.subTest(name), self.assertRaisesRegex(AssertionError, problem):
                self.run_ranks(2, script, name)

    def test_torchs_schedulers_give_the_rate_and_continue_from_checkpoints(self):
        self.train(1, 4, list(SCHEDULERS), log_interval=1)
        self.train(2, 9, list(SCHEDULERS), log_interval=1, max_sentences={"0": 5, "1": 9})
        scheduler = torch.optim.lr_scheduler
        for name, call in SCHEDULERS.items():
            with self.subTest(name):
                torch.manual_seed(1)
                model = torch.nn.Linear(5, 1).double()
                optimizer = torch.optim.SGD([{"params": [model.weight]}, {"params": [model.bias], "lr": 0.01}], lr=0.02,
                                            momentum=0.9)
                made = eval(call)
                x, y = torch.tensor(self.x), torch.tensor(self.y)
                rates = []
                for _ in range(9):
                    rates.append(optimizer.param_groups[0]["lr"])
                    optimizer.zero_grad()
                    ((model(x).squeeze(1) - y).square().sum() / SAMPLES).backward()
                    optimizer.step()
                    made.step()
                self.check(name, model)
                lines = map(json.loads, (self.folder / name / "metrics.jsonl").read_text().splitlines())
                self.assertEqual([line["lr"] for line in lines if line["kind"] == "train"], rates)

    def test_a_schedule_that_ends_with_the_run_also_where_steps_are_measured(self):
        self.write("short.py", """
            import torch, tasks
            class Short(tasks.Linear):
                def optimizer(self, groups, lr):
                    optimizer = torch.optim.SGD(groups, lr=lr, momentum=0.9)
                    return optimizer, torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.05, total_steps=2)
        """)
        script = self.write("train_short.py", f"""
            import sys, hetseq, short
            hetseq.train(short.Short(), data="data.h5", lr=0.02, batch_size={SAMPLES}, max_update=int(sys.argv[1]), cache_dir="none",
                         ema=float(sys.argv[2]))
        """)
        self.assertIn("measuring the speed", self.run_ranks(2, script, "2", "0"))
        for average in ("0", "0.9"):
            with self.assertRaises(AssertionError) as refused:
                self.run_ranks(2, script, "4", average)
            self.assertIn("The specified number of total steps is 2", str(refused.exception))

    def test_a_rate_that_is_given_twice_is_refused_and_so_is_a_scheduler_that_follows_a_loss(self):
        self.write("refused.py", f"""
            import hetseq, tasks, torch
            class Plateau(tasks.Linear):
                def optimizer(self, groups, lr):
                    optimizer = torch.optim.SGD(groups, lr=lr)
                    return optimizer, torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
            class Kept(tasks.Linear):
                def optimizer(self, groups, lr):
                    optimizer = torch.optim.SGD(groups, lr=lr)
                    self.scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
                    return optimizer
            class Own(tasks.Linear):
                def optimizer(self, groups, lr):
                    return torch.optim.Adam(groups, lr=2 * lr)
            class OfGroup(tasks.Linear):
                def optimizer(self, groups, lr):
                    return torch.optim.SGD([{{**group, "lr": 0.25}} for group in groups], lr=lr)
            class OfGroupLater(tasks.Linear):
                def optimizer(self, groups, lr):
                    optimizer = torch.optim.SGD(groups, lr=lr)
                    optimizer.param_groups[-1]["lr"] = 0.5
                    return optimizer
            class Slowing(torch.optim.SGD):
                def step(self, closure=None):
                    super().step()
                    for group in self.param_groups:
                        group["lr"] *= 0.5
            class OfStep(tasks.Linear):
                def optimizer(self, groups, lr):
                    return Slowing(groups, lr=lr)
            for task, options in ((Plateau, {{}}), (Kept, {{}}), (Own, {{}}), (OfGroup, {{}}), (OfGroupLater, {{}}), (OfStep, {{}}),
                                  (tasks.Cosine, {{"warmup_updates": 2}}), (tasks.Cosine, {{"lr_scheduler": "cosine"}})):
                try:
                    hetseq.train(task(), data="data.h5", lr=0.1, batch_size={SAMPLES}, max_update=2, balance="declared",
                                 **options)
                except hetseq.Error as error:
                    print("refused:", error)
        """)
        told = self.run_ranks(1, "refused.py")
        for text in ("gives a ReduceLROnPlateau (it follows a loss", "makes a ExponentialLR (the trainer sets",
                     "was made with a learning rate of 0.2, where --lr is 0.1 (the trainer sets",
                     "a group of the optimizer has a learning rate of 0.25, where that of --lr is 0.1 (the trainer sets",
                     "a group of the optimizer has a learning rate of 0.5, where that of --lr is 0.1 (the trainer sets",
                     "the step of Slowing changes its learning rate (the trainer sets",
                     "given twice, by the CosineAnnealingLR of the task's optimizer and by --warmup-updates",
                     "given twice, by the CosineAnnealingLR of the task's optimizer and by --lr-scheduler cosine"):
            self.assertRegex(told, r"refused: the task's Python failed:\n.*" + re.escape(text))

    def test_a_state_that_is_cut_over_ranks_gives_the_same_bytes_and_torchs_own_is_refused(self):
        self.write("wide.py", """
            import torch, tasks
            class Wide(tasks.Linear):
                # 60,000 numbers: several parts.
                def model(self, config):
                    model = torch.nn.Sequential(torch.nn.Linear(5, 10000), torch.nn.Tanh(), torch.nn.Linear(10000, 1))
                    model[2].bias.requires_grad_(False)
                    return model
                def forward(self, model, batch):
                    return (model(batch["x"].to(model[0].weight.dtype)).squeeze(1) - batch["y"]).square().sum()
        """)
        script = self.write("cut.py", f"""
            import sys, hetseq, wide
            hetseq.train(wide.Wide(), data="data.h5", optimizer="adamw", lr=0.02, weight_decay=0.1, clip_norm=0.5,
                         batch_size={SAMPLES}, max_update=5, balance="declared", save_dir=sys.argv[1], shard=sys.argv[2],
                         shard_by={{"0": 1, "1": 0, "2": 3}})
        """)
        self.run_ranks(3, script, "whole", "none")
        self.run_ranks(3, script, "parts", "optimizer")
        checkpoint = "checkpoints/update-00000005"
        files = sorted(path.name for path in (self.folder / "whole" / checkpoint).glob("*.safetensors"))
        self.assertEqual(len(files), 2)
        for name in files:
            whole, parts = ((self.folder / run / checkpoint / name).read_bytes() for run in ("whole", "parts"))
            self.assertEqual(whole, parts, name)
        with self.assertRaises(AssertionError) as refused:
            self.train(2, 3, ["Momentum"], shard="optimizer")
        self.assertIn("--shard optimizer with an optimizer of the task's own", str(refused.exception))


if __name__ == "__main__":
    unittest.main(verbosity=2)
