"""What a task says of itself, whose task file is run, and what may not change once its training has begun
(python/hetseq/task.py, trust.py, unchanged.py, optimizers.py)."""

import io
import os
import pathlib
import tempfile
import unittest
from unittest import mock

from harness import need

need("torch")

import torch
from torch import nn
from torch.optim import SGD, lr_scheduler

import hetseq
from hetseq import TaskError, run
from hetseq.bridge import _named_in
from hetseq.optimizers import Adapter
from hetseq.task import describe, overrides
from hetseq.unchanged import Parameters


class DescriptionTest(unittest.TestCase):
    def described(self, **own):
        return describe(type("T", (hetseq.Task,), {"fields": {"x": hetseq.Field(torch.float32)}, **own})(), "")

    def test_names_are_given_once(self):
        with self.assertRaisesRegex(TaskError, "the losses have the name 'nll' twice"):
            self.described(losses=["nll", "loss", "nll"])
        with self.assertRaisesRegex(TaskError, "losses and metrics have the name 'nll' twice"):
            self.described(losses=["nll"], metrics=["accuracy", "nll"])

    def test_names_that_hetseq_uses_are_refused(self):
        self.assertEqual(self.described(losses=["loss"])["losses"], ["loss"])
        for own in ({"losses": ["loss", "nll"]}, {"metrics": ["loss"], "losses": ["nll"]}):
            with self.assertRaisesRegex(TaskError, "'loss' is the name of the sum of all losses"):
                self.described(**own)
        for own in ({"metrics": ["seconds"]}, {"metrics": ["rank_wait_ms"]}, {"losses": ["kind"]}):
            with self.assertRaisesRegex(TaskError, "cannot be the name of a loss or a metric.*metrics.jsonl"):
                self.described(**own)
        with self.assertRaisesRegex(TaskError, "field 'x_lengths' has the name under which"):
            self.described(fields={"x": hetseq.Ragged(torch.int64), "x_lengths": hetseq.Field(torch.int64)})

    def test_only_what_is_a_share_is_shown_in_percent(self):
        metrics = ["accuracy", "top5_Accuracy", "error", hetseq.Metric("auc", is_share=True),
                   hetseq.Metric("accuracy_ratio", is_share=False)]
        self.assertEqual([metric["is_share"] for metric in self.described(metrics=metrics)["metrics"]],
                         [True, True, False, True, False])


class OwnMethodsTest(unittest.TestCase):
    def test_a_method_may_be_set_on_the_object(self):
        task = hetseq.Task()
        self.assertFalse(overrides(task, "transform"))

        task.transform = lambda sample, training: sample
        task.dataset = [1, 2, 3]  # data of the task's own, and no method

        self.assertTrue(overrides(task, "transform"))
        self.assertFalse(overrides(task, "dataset"))

    def test_tied_parameters_are_once_in_a_group(self):
        model = nn.ModuleDict({"a": nn.Linear(2, 2), "b": nn.Linear(2, 2)})
        model["b"].weight = model["a"].weight

        names = _named_in({"params": ["a", "b"]}, model)

        self.assertEqual(names, ["a.bias", "a.weight", "b.bias"])


class ScriptErrorTest(unittest.TestCase):
    def printed(self, error, rank):
        """By the hook for an exception that a script does not catch."""
        run._remember.before = mock.Mock()
        try:
            raise error
        except Exception as raised:
            with mock.patch("hetseq.run.rank", return_value=rank), mock.patch("sys.stderr", io.StringIO()) as stream:
                run._remember(type(raised), raised, raised.__traceback__)
        run._uncaught.clear()
        return stream.getvalue(), run._remember.before.called

    def test_what_the_trainer_told_is_not_told_again(self):
        text, is_printed_by_python = self.printed(run.Error("the task's Python failed:\nKeyError: 'x'", 78), 0)
        self.assertIn("in printed", text)
        self.assertIn("hetseq.Error: as told above", text)
        self.assertNotIn("KeyError", text)
        self.assertFalse(is_printed_by_python)
        self.assertEqual(self.printed(run.Error("of all ranks", 78), 1), ("", False))
        self.assertEqual(self.printed(KeyError("of the script itself"), 1), ("", True))


class TrustTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "tasks").mkdir()
        (self.folder / "run").mkdir()
        self.task = self.folder / "tasks" / "mine.py"
        self.task.write_text("raise RuntimeError('it runs')\n")
        self.configuration = self.folder / "run" / "config.cfg"
        self.configuration.write_text(f"task-file = {self.task}:Mine\n")

    def runs(self, *words):
        with self.assertRaisesRegex(RuntimeError, "it runs"):
            run.main(list(words))

    def refused(self, path, why):
        for words in (["predict", str(self.folder / "run")], ["train", str(self.configuration)]):
            with self.assertRaisesRegex(TaskError, f"names the Python file.*{path} {why}.*--trust"):
                run.main(words)
            self.runs(*words, "--trust")
        with self.assertRaisesRegex(TaskError, why):
            hetseq.load(self.folder / "run")
        with self.assertRaisesRegex(RuntimeError, "it runs"):
            hetseq.load(self.folder / "run", trust=True)

    def test_what_is_ones_own_runs(self):
        self.runs("predict", str(self.folder / "run"))

    def test_what_belongs_to_somebody_else_does_not(self):
        for path in (self.folder / "run", self.configuration, self.folder / "tasks", self.task):
            found = os.stat

            def stat(place, *args, **options):
                status = found(place, *args, **options)
                if os.fspath(place) != os.fspath(path):
                    return status
                return os.stat_result((*status[:4], os.geteuid() + 4321, *status[5:]))

            with self.subTest(path.name), mock.patch("os.stat", stat):
                self.refused(path, f"belongs to user {os.geteuid() + 4321}")
                self.runs("evaluate", f"{self.task}:Mine")  # named by the user

    def test_what_everybody_may_write_does_not(self):
        self.task.chmod(0o666)
        self.refused(self.task, "may be written by everybody")
        self.task.chmod(0o664)
        (self.folder / "tasks").chmod(0o777)
        self.refused(self.folder / "tasks", "may be written by everybody")
        (self.folder / "tasks").chmod(0o1777)
        self.runs("predict", str(self.folder / "run"))


class ParametersTest(unittest.TestCase):
    def check(self, change, message):
        model = nn.Sequential(nn.Linear(5, 4), nn.Linear(4, 1))
        model[0].bias.requires_grad_(False)
        parameters = Parameters(model)
        parameters.check()
        change(model)
        with self.assertRaisesRegex(TaskError, message):
            parameters.check()

    def test_a_gradient_that_is_let_go_is_named(self):
        model = nn.Linear(5, 4)
        parameters = Parameters(model)
        parameters.check()
        model(torch.ones(1, 5)).sum().backward()
        parameters.check()
        model.zero_grad()
        with self.assertRaisesRegex(TaskError, r"the parameter 'weight' lost its gradient \(zero_grad\).*leave zero_grad"):
            parameters.check()

    def test_each_change_is_named(self):
        self.check(lambda m: m[0].bias.requires_grad_(True), r"'0\.bias' was unfrozen \(requires_grad_\).*--init-model")
        self.check(lambda m: m[1].requires_grad_(False), r"'1\.weight' was frozen")
        self.check(lambda m: m.half(), r"'0\.weight' was moved or converted \(torch.float16 on cpu\)")
        self.check(lambda m: setattr(m[1].weight, "data", torch.zeros(1, 4)), r"'1\.weight' was moved or converted")
        self.check(lambda m: setattr(m[1], "weight", nn.Parameter(torch.zeros(1, 4))), r"'1\.weight' was replaced")
        self.check(lambda m: m[1].register_parameter("bias", None), r"'1\.bias' was replaced or removed")
        self.check(lambda m: m.append(nn.Linear(1, 1)), r"'2\.weight' was added")
        self.check(lambda m: m[1].register_parameter("more", nn.Parameter(torch.zeros(1))), r"'1\.more' was added")

    def test_values_may_change_in_place(self):
        model = nn.Linear(5, 4)
        parameters = Parameters(model)
        with torch.no_grad():
            model.weight.copy_(torch.zeros(4, 5))
        model.eval()
        model.dropout = nn.Dropout()
        parameters.check()
        parameters.check()


class AdapterTest(unittest.TestCase):
    def setUp(self):
        self.tensors = [torch.zeros(2, 3, requires_grad=True), torch.zeros(3, requires_grad=True)]

    def adapter(self, make, factors=(1.0, 1.0)):
        return Adapter(make, ["weight", "bias"], self.tensors, factors, [True, False], 0.1)

    def refused(self, message, make, **more):
        with self.assertRaisesRegex(TaskError, message):
            self.adapter(make, **more)

    def test_groups_have_the_order_of_the_task_and_parameters_that_of_the_module(self):
        names = ["last", "table", "bias", "weight", "first"]  # as the trainer holds them
        tensors = [torch.zeros(2, requires_grad=True) for _ in names]
        of_task = {"first": 2, "weight": 0, "bias": 0, "table": 1, "last": 2}  # 2: in none
        seen = []

        def make(groups, lr):
            seen.append([[name for p in group["params"] for name, tensor in zip(names, tensors) if tensor is p]
                         for group in groups])
            return SGD(groups, lr=lr)

        Adapter(make, names, tensors, [1.0, 1.0, 0.1, 0.1, 1.0], [True, True, False, True, True], 0.1, groups=of_task)
        self.assertEqual(seen[0], [["weight"], ["bias"], ["table"], ["first", "last"]])

    def test_a_step_that_needs_a_closure_is_refused(self):
        self.refused("the step of LBFGS needs a closure", lambda groups, lr: torch.optim.LBFGS(
            [p for group in groups for p in group["params"]], lr=lr))

    def test_schedulers_are_refused_by_name(self):
        kept = []
        for name, scheduler in {
            "StepLR": lambda made: lr_scheduler.StepLR(made, 1),
            "LambdaLR": lambda made: lr_scheduler.LambdaLR(made, lambda step: 1.0),
            "ReduceLROnPlateau": lr_scheduler.ReduceLROnPlateau,
            "OneCycleLR": lambda made: lr_scheduler.OneCycleLR(made, 0.1, total_steps=9),
        }.items():
            def make(groups, lr, scheduler=scheduler):
                made = SGD(groups, lr=lr)
                kept.append(scheduler(made))
                return made

            self.refused(f"optimizer makes a {name} .the trainer sets the learning rate.*`schedule", make)
        for kind in (lr_scheduler.LRScheduler, lr_scheduler.ReduceLROnPlateau):
            self.assertEqual(kind.__init__.__qualname__, f"{kind.__name__}.__init__")

    def test_what_comes_later_is_found_at_the_next_step(self):
        for change, message in ((lambda made: lr_scheduler.StepLR(made, 1), "was given a learning rate scheduler"),
                                (lambda made: made.param_groups[0].update(lr=7), "learning rate of the optimizer was changed"),
                                (lambda made: made.add_param_group({"params": [nn.Parameter(torch.zeros(1))]}),
                                 "given other parameters after the training began")):
            adapter = self.adapter(lambda groups, lr: SGD(groups, lr=lr))
            for lr in (0.1, 0.2):
                adapter.step(lr)
            change(adapter.optimizer)
            with self.assertRaisesRegex(TaskError, message):
                adapter.step(0.3)

    def test_all_parameters_are_in_the_optimizer_at_their_rates(self):
        flat = lambda groups, lr: SGD([parameter for group in groups for parameter in group["params"]], lr=lr)
        self.refused("the optimizer lacks 'bias'", lambda groups, lr: SGD(groups[:1], lr=lr))
        self.refused("parameters that are not in `groups`",
                     lambda groups, lr: SGD([*groups, {"params": [nn.Parameter(torch.zeros(1))]}], lr=lr))
        self.refused("lack 'lr_factor'", flat, factors=(1.0, 0.5))
        for tensor in self.tensors:
            tensor.grad = torch.ones_like(tensor)
        self.adapter(flat).step(0.5)
        self.assertEqual(self.tensors[1].tolist(), [-0.5] * 3)


if __name__ == "__main__":
    unittest.main(verbosity=2)
