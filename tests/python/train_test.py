"""Tasks in Python, trained by hetseq as a user starts it."""

import json
import unittest

from harness import Case, capacities, largest_difference, need, occurrences, tensors

need("torch", "numpy", "h5py", "safetensors")

import h5py
import numpy as np
import torch

MLP = """
    import torch, hetseq
    from torch import nn
    from torch.nn import functional as F

    class Mlp(hetseq.Task):
        fields = {"x": hetseq.Field(torch.float64, shape=(6,)), "y": hetseq.Field(torch.int64)}
        losses, metrics = ["nll"], ["accuracy"]
        options = {"width": hetseq.Option(8, "of the hidden layer")}

        def model(self, config):
            return nn.Sequential(nn.Linear(6, config.width), nn.Tanh(), nn.Linear(config.width, 3))

        def forward(self, model, batch):
            logits = model(batch["x"].to(model[0].weight.dtype))
            losses = {"nll": F.cross_entropy(logits, batch["y"], reduction="sum")}
            if not model.training:
                losses["accuracy"] = (logits.argmax(1) == batch["y"]).sum()
            return losses
"""
SAMPLES = 60


class MlpCase(Case):
    def setUp(self):
        super().setUp()
        draw = np.random.default_rng(3)
        self.x, self.y = draw.normal(size=(SAMPLES, 6)), draw.integers(0, 3, SAMPLES)
        with h5py.File(self.folder / "data.h5", "w") as file:
            file["x"], file["y"] = self.x, self.y
        self.write("mlp.py", MLP)

    def model(self, run):
        return self.folder / run / "model.safetensors"


class TrainTest(MlpCase):
    def train(self, ranks, *words, code=0, task="mlp.py:Mlp"):
        return self.hetseq(ranks, "train", task, "--data", "data.h5", "--precision", "fp64", "--optimizer", "sgd", "--lr",
                           "0.1", "--balance", "declared", *words, code=code)

    def test_full_batches_are_gradient_descent_as_pytorch_does_it(self):
        self.train(2, "--batch-size", SAMPLES, "--max-sentences", capacities(11, 7), "--max-update", 10, "--save-dir", "run",
                   "--seed", 5)

        torch.manual_seed(5)
        model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)).double()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(10):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(torch.tensor(self.x)), torch.tensor(self.y)).backward()
            optimizer.step()
        trained = tensors(self.model("run"))
        for name, value in model.state_dict().items():
            self.assertLess((trained[name] - value).abs().max().item(), 1e-12, name)

    def test_ranks_of_unlike_capacity_reach_what_one_rank_reaches(self):
        words = ("--batch-size", 20, "--max-update", 10)
        self.train(1, *words, "--max-sentences", 20, "--save-dir", "one")
        self.train(3, *words, "--max-sentences", capacities(7, 0, 3), "--save-dir", "three")
        self.assertLess(largest_difference(self.model("one"), self.model("three")), 1e-12)

    def test_a_checkpoint_of_one_rank_is_continued_by_two(self):
        words = ("--batch-size", 20, "--save-dir")
        self.train(1, "--max-sentences", 20, "--max-update", 10, *words, "whole")
        self.train(1, "--max-sentences", 20, "--max-update", 4, *words, "parts")
        self.train(2, "--max-sentences", capacities(3, 9), "--max-update", 10, *words, "parts")
        self.assertLess(largest_difference(self.model("whole"), self.model("parts")), 1e-12)

    def test_an_option_of_the_task_reaches_the_model_and_is_shown(self):
        self.train(1, "--width", 5, "--max-update", 1, "--batch-size", 20, "--save-dir", "run")
        self.assertEqual(tensors(self.model("run"))["0.weight"].shape, (5, 6))
        self.assertIn("--width N", self.hetseq(1, "train", "mlp.py:Mlp", "--help"))

    def test_a_run_names_its_task_for_other_commands(self):
        self.train(2, "--max-update", 3, "--batch-size", 20, "--max-sentences", 10, "--valid-data", "data.h5", "--save-dir",
                   "run")
        told = self.hetseq(2, "evaluate", "run")
        self.assertRegex(told, r"(?s)nll.*accuracy +\d")
        self.train(1, "--save-dir", "again", "--max-update", 3, task="run/config.cfg")
        self.assertLess(largest_difference(self.model("run"), self.model("again")), 1e-12)

    def test_a_run_records_the_task_that_ran_whoever_named_it(self):
        self.write("other.py", "from mlp import Mlp\nclass Other(Mlp): pass\n")
        self.write("config.cfg", "task-file = mlp.py:Mlp  # a comment\ndata = data.h5\nmax-update = 1\nbatch-size = 20\n")
        for run, words, expected in (("own", (), "mlp.py:Mlp"), ("given", ("--task-file", "other.py:Other"), "other.py:Other"),
                                     ("word", ("other.py",), "other.py:Other")):
            self.hetseq(1, "train", "config.cfg", *words, "--save-dir", run)
            self.assertIn(f"task-file = {self.folder.resolve() / expected}\n", (self.folder / run / "config.cfg").read_text())
        told = self.hetseq(1, "train", "mlp.py:Mlp", "--task-file", "other.py:Other", code=78)
        self.assertIn("the command line names 2 tasks in Python (mlp.py:Mlp, other.py:Other): name one", told)
        self.assertIn("--task-file has no value", self.hetseq(1, "train", "--task-file", code=78))
        (self.folder / "folder.py").mkdir()
        self.assertIn("folder.py is a folder", self.hetseq(1, "train", "folder.py:Mlp", code=78))
        (self.folder / "mlp.py").rename(self.folder / "moved.py")
        told = self.hetseq(1, "evaluate", "own", code=78)
        self.assertRegex(told, r"there is no file .*mlp.py \(the task-file of .*own/config.cfg; --task-file FILE.py:CLASS names")

    def test_predictions_are_written_in_the_order_of_the_data(self):
        self.write("predicting.py", """
            import hetseq, torch
            from mlp import Mlp

            class Predicting(Mlp):
                fields = {**Mlp.fields, "y": hetseq.Field(torch.int64, is_target=True)}
                def predict(self, model, batch):
                    logits = model(batch["x"].to(model[0].weight.dtype))
                    return {"label": logits.argmax(1), "best": [row[row > 0] for row in logits]}
        """)
        self.train(2, "--max-update", 3, "--batch-size", 20, "--max-sentences", 10, "--save-dir", "run",
                   task="predicting.py:Predicting")
        with h5py.File(self.folder / "unlabelled.h5", "w") as file:
            file["x"] = self.x
        self.hetseq(2, "predict", "run", "--data", "unlabelled.h5", "--output", "unlabelled-out.h5")
        self.hetseq(2, "predict", "run", "--data", "data.h5", "--output", "out.h5")
        with h5py.File(self.folder / "out.h5") as file, h5py.File(self.folder / "unlabelled-out.h5") as other:
            self.assertEqual(file["label"][:].tolist(), other["label"][:].tolist())
        model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)).double()
        model.load_state_dict(tensors(self.model("run")))
        logits = model(torch.tensor(self.x)).detach()
        with h5py.File(self.folder / "out.h5") as file:
            self.assertEqual(file["label"][:].tolist(), logits.argmax(1).tolist())
            lengths = np.diff(file["best_offsets"][:]).tolist()
            self.assertEqual(lengths, (logits > 0).sum(1).tolist())
            # The weights pass through fp32 when a model is read.
            self.assertTrue(np.allclose(file["best"][:], logits[logits > 0].numpy(), rtol=0, atol=1e-6))

    def test_an_exception_of_one_rank_ends_all_with_its_traceback_once(self):
        self.write("bad.py", """
            import hetseq
            from mlp import Mlp

            class Bad(Mlp):
                def forward(self, model, batch):
                    if hetseq.rank() == 1:
                        raise KeyError("of rank 1 alone")
                    return super().forward(model, batch)
        """)
        told = self.train(2, "--max-update", 3, "--batch-size", 20, "--max-sentences", 10, task="bad.py:Bad", code=78)
        self.assertEqual(occurrences(told, "KeyError: 'of rank 1 alone'"), 1, told)
        self.assertIn("bad.py", told)
        self.assertIn("rank 1", told)

    def test_an_exception_of_all_ranks_is_told_once(self):
        self.write("bad.py", """
            from mlp import Mlp

            class Bad(Mlp):
                def model(self, config):
                    raise RuntimeError("no model today")
        """)
        told = self.train(2, "--max-update", 3, "--batch-size", 20, task="bad.py:Bad", code=78)
        self.assertEqual(occurrences(told, "RuntimeError: no model today"), 1, told)

    def test_a_task_file_with_an_error_is_told_once(self):
        self.write("bad.py", "class Bad(:\n")
        told = self.train(2, "--max-update", 1, "--batch-size", 20, task="bad.py:Bad", code=78)
        self.assertEqual(occurrences(told, "SyntaxError: invalid syntax"), 1, told)

    def test_groups_of_parameters_learn_at_their_own_rates_or_not_at_all(self):
        self.write("groups.py", """
            from mlp import Mlp

            class Groups(Mlp):
                def param_groups(self, model):
                    return [{"params": model[0].parameters(), "frozen": True}, {"params": "2.bias", "lr_factor": 0.5}]
        """)
        words = ("--batch-size", SAMPLES, "--max-update", 1, "--save-dir")
        self.train(1, *words, "all")
        self.train(2, *words, "groups", task="groups.py:Groups")
        torch.manual_seed(1)
        start = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)).double().state_dict()
        whole, groups = tensors(self.model("all")), tensors(self.model("groups"))
        self.assertTrue(torch.equal(groups["0.weight"], start["0.weight"]))
        self.assertTrue(torch.allclose(groups["2.weight"], whole["2.weight"], rtol=0, atol=1e-14))
        self.assertTrue(torch.allclose(groups["2.bias"] - start["2.bias"], (whole["2.bias"] - start["2.bias"]) / 2, rtol=0,
                                       atol=1e-14))

    def test_constant_buffers_are_saved_and_changing_ones_refused(self):
        self.write("buffers.py", """
            import torch
            from mlp import Mlp

            class Counts(torch.nn.Module):
                def __init__(self):
                    super().__init__()
                    self.register_buffer("seen", torch.tensor([7]))
                def forward(self, x):
                    return x

            class Constant(Mlp):
                def model(self, config):
                    return super().model(config).append(Counts())

            class Changing(Constant):
                def forward(self, model, batch):
                    if model.training:
                        model[3].seen += len(batch["x"])
                    return super().forward(model, batch)

            class Kept(Changing):
                buffers = "rank0"

            class Tested(Mlp):
                '''Its metric is 0 for all samples, so that the self-test looks at it in validations too.'''
                def model(self, config):
                    model = super().model(config)
                    model.register_buffer("scale", torch.ones(2))
                    return model
                def forward(self, model, batch):
                    losses = super().forward(model, batch)
                    if not model.training:
                        losses["accuracy"] = losses["accuracy"] * 0
                    return losses
        """)
        words = ("--batch-size", 20, "--max-update", 2, "--save-dir")
        self.train(2, *words, "constant", "--max-sentences", 10, task="buffers.py:Constant")
        self.assertEqual(tensors(self.model("constant"))["3.seen"].tolist(), [7])
        told = self.train(1, *words, "changing", task="buffers.py:Changing", code=78)
        self.assertIn("the buffer 3.seen changed in training", told)
        self.train(1, *words, "kept", task="buffers.py:Kept")
        self.train(1, "--batch-size", 20, "--max-update", 4, "--save-dir", "tested", "--valid-data", "data.h5",
                   "--valid-interval", 1, task="buffers.py:Tested")
        self.assertGreater(tensors(self.model("kept"))["3.seen"].item(), 7)

    def test_rows_of_unequal_length_arrive_padded_and_are_weighed_by_tokens(self):
        lengths = np.arange(1, 21)
        with h5py.File(self.folder / "ragged.h5", "w") as file:
            file["ids"] = np.arange(lengths.sum(), dtype=np.int32) % 11
            file["ids_offsets"] = np.concatenate([[0], lengths.cumsum()])
        self.write("ragged.py", """
            import torch, hetseq
            from torch import nn
            from torch.nn import functional as F

            class Ragged(hetseq.Task):
                fields = {"ids": hetseq.Ragged(torch.int64, padding=-100)}
                tokens, weights = "ids", hetseq.tokens("ids")
                def model(self, config):
                    return nn.Embedding(11, 11)
                def forward(self, model, batch):
                    assert (batch["ids"] != -100).sum(1).equal(batch["ids_lengths"])
                    logits = model(batch["ids"].clamp(min=0))
                    return F.cross_entropy(logits.flatten(0, 1), batch["ids"].flatten(), reduction="sum")
        """)
        for ranks, run, caps in ((1, "one", "64"), (2, "two", "0=24,1=40")):
            self.hetseq(ranks, "train", "ragged.py:Ragged", "--data", "ragged.h5", "--precision", "fp64", "--optimizer",
                        "sgd", "--lr", 0.1, "--batch-tokens", 60, "--max-tokens", caps, "--max-update", 6, "--balance",
                        "declared", "--save-dir", run)
        self.assertLess(largest_difference(self.model("one"), self.model("two")), 1e-12)

    def test_a_parameter_that_is_unfrozen_later_ends_the_run_on_all_ranks(self):
        self.write("later.py", """
            from mlp import Mlp

            class Later(Mlp):
                updates = 0
                def model(self, config):
                    model = super().model(config)
                    model[0].requires_grad_(False)
                    return model
                def schedule(self, update, epoch, config):
                    self.updates = update
                    return 0.1
                def forward(self, model, batch):
                    if self.updates == 2:
                        model[0].requires_grad_(True)
                    return super().forward(model, batch)
        """)
        told = self.train(2, "--max-update", 5, "--batch-size", 20, "--max-sentences", capacities(3, 9), task="later.py:Later",
                          code=78)
        self.assertIn("the parameter '0.weight' was unfrozen (requires_grad_) after the training began", told)
        self.assertNotIn("Traceback", told)
        self.assertNotIn("update 3/5", told)

    def test_the_program_hands_a_task_in_python_over(self):
        import pathlib
        import subprocess
        from harness import ROOT, environment
        program = pathlib.Path(environment().get("HETSEQ_PROGRAM", ROOT / "build/cpu/bin/hetseq"))
        if not program.exists():
            self.skipTest("the program is not built")
        run = subprocess.run([program, "train", "mlp.py", "--data", "data.h5", "--max-update", "1", "--batch-size", "20",
                              "--save-dir", "run"], cwd=self.folder, env=environment(), stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, timeout=120)
        self.assertEqual(run.returncode, 0, run.stdout)
        self.assertTrue(self.model("run").exists())
        self.assertIn("task-file = ", (self.folder / "run/config.cfg").read_text())


class ScriptTest(MlpCase):
    """hetseq.train in a script."""

    def script(self, ranks, text, code=0):
        return self.run_ranks(ranks, self.write("script.py", text), code=code)

    def test_train_returns_the_trained_module_twice_and_leaves_the_process_as_it_was(self):
        told = self.script(2, """
            import signal, torch, hetseq
            from safetensors.torch import load_file
            from mlp import Mlp

            torch.manual_seed(9)
            before = torch.get_rng_state()
            handler = signal.getsignal(signal.SIGINT)
            for run in ("first", "second"):
                module = hetseq.train(Mlp(), data="data.h5", batch_size=20, max_sentences={"0": 3, "1": 9}, balance="declared",
                                      precision="fp64", lr=0.1, optimizer="sgd", max_update=4, save_dir=run)
                saved = load_file(f"{run}/model.safetensors")
                assert all(torch.equal(saved[name], value) for name, value in module.state_dict().items())
                assert not module.training
                module(torch.zeros(2, 6).double()).sum().backward()
            assert torch.equal(before, torch.get_rng_state())
            assert signal.getsignal(signal.SIGINT) is handler
            print(f"done {hetseq.rank()}")
        """)
        self.assertIn("done 0", told)
        self.assertIn("done 1", told)
        self.assertEqual(largest_difference(self.model("first"), self.model("second")), 0)

    def test_an_exception_between_trainings_ends_all_ranks(self):
        told = self.script(2, """
            import hetseq
            from mlp import Mlp
            hetseq.train(Mlp(), data="data.h5", batch_size=20, max_update=1)
            if hetseq.rank() == 1:
                raise KeyError("between")
            hetseq.train(Mlp(), data="data.h5", batch_size=20, max_update=1)
        """, code=1)
        self.assertEqual(occurrences(told, "KeyError: 'between'"), 1, told)
        self.assertNotIn("MPI_ERR", told)

    def test_a_task_that_is_not_exact_says_so_everywhere(self):
        """Negatives of the whole micro-batch, and mixed samples (mixup)."""
        self.write("loose.py", """
            import torch, hetseq
            from torch.nn import functional as F

            class Loose(hetseq.Task):
                fields, exact = {"x": hetseq.Field(torch.float32, (6,))}, False
                def model(self, config):
                    return torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.Dropout(0.1))
                def forward(self, model, batch):
                    x = batch["x"]
                    mixed = 0.9 * x + 0.1 * x[torch.randperm(len(x))]
                    scores = F.normalize(model(mixed)) @ F.normalize(x).T
                    return F.cross_entropy(scores, torch.arange(len(x), device=x.device), reduction="sum")

            class Strict(Loose):
                exact = True
        """)
        with h5py.File(self.folder / "loose.h5", "w") as file:
            file["x"] = np.random.default_rng(1).normal(size=(40, 6)).astype(np.float32)
        words = ["--data", "loose.h5", "--valid-data", "loose.h5", "--batch-size", 20, "--max-epoch", 2, "--optimizer", "sgd",
                 "--lr", 0.1, "--balance", "equal"]
        said = r"results of this task depend on how batches are cut .*\(exact = False\)"
        out = self.hetseq(2, "train", "loose.py:Loose", "--save-dir", "run", *words)
        self.assertEqual(occurrences(out, said), 1, out)
        self.assertIn("another cut of the batches would give another result (exact = False)", out)
        self.assertIs(json.loads((self.folder / "run/summary.json").read_text())["exact"], False)
        self.hetseq(1, "report", "run", "--output", "report.html")
        self.assertIn("yes (exact = False)", (self.folder / "report.html").read_text())
        self.assertRegex(self.hetseq(1, "evaluate", "run", "--data", "loose.h5"), said)
        out = self.hetseq(1, "train", "loose.py:Strict", *words, code=78)
        self.assertRegex(out, r"torch.randperm in the task's forward .*exact = False")

    def test_a_missing_metric_is_found_before_training(self):
        told = self.script(1, """
            import hetseq
            from mlp import Mlp

            class Lacking(Mlp):
                metrics = ["accuracy", "other"]
            try:
                hetseq.train(Lacking(), data="data.h5", batch_size=20, max_update=1)
            except hetseq.Error as error:
                print(error)
        """)
        self.assertIn("forward gave no 'other'", told)

    def test_load_gives_the_model_of_a_run(self):
        self.script(1, """
            import torch, hetseq
            from mlp import Mlp
            module = hetseq.train(Mlp(), data="data.h5", batch_size=20, max_update=2, width=5, save_dir="run")
            loaded = hetseq.load("run")
            assert not loaded.training
            assert all(torch.equal(value.cpu(), loaded.state_dict()[name]) for name, value in module.state_dict().items())
        """)

    def test_a_script_records_its_own_task_whatever_a_configuration_names(self):
        self.write("config.cfg", "task-file = elsewhere.py:Mlp\nmax-update = 1\nbatch-size = 20\n")
        self.script(1, """
            import hetseq
            from mlp import Mlp
            hetseq.train(Mlp(), "config.cfg", data="data.h5", save_dir="run")
        """)
        self.assertIn(f"task-file = {self.folder.resolve() / 'mlp.py:Mlp'}\n", (self.folder / "run/config.cfg").read_text())

    def test_mpi_may_run_already(self):
        try:
            import mpi4py
        except ImportError:
            self.skipTest("there is no mpi4py")
        told = self.script(2, """
            from mpi4py import MPI
            import hetseq
            from mlp import Mlp
            hetseq.train(Mlp(), data="data.h5", batch_size=20, max_update=2)
            assert MPI.Is_initialized() and not MPI.Is_finalized()
            print(f"sum {MPI.COMM_WORLD.allreduce(1)}")
        """)
        self.assertEqual(occurrences(told, "sum 2"), 2, told)

    def test_an_error_of_all_ranks_is_an_exception_with_its_cause(self):
        told = self.script(2, """
            import hetseq
            from mlp import Mlp

            class Bad(Mlp):
                def model(self, config):
                    raise ZeroDivisionError("no model")
            for task, words, cause in ((Bad(), {"batch_size": 20}, ZeroDivisionError), (Mlp(), {"batch_size": -1}, type(None))):
                try:
                    hetseq.train(task, data="data.h5", max_update=1, **words)
                except hetseq.Error as error:
                    assert isinstance(error.__cause__, cause), error.__cause__
                    assert error.code == 78, error.code
                    print("refused:", str(error).splitlines()[0])
            hetseq.train(Mlp(), data="data.h5", max_update=1, batch_size=20)
            print("still alive")
        """)
        self.assertEqual(occurrences(told, "refused:"), 4, told)  # of two ranks, so lines may mix
        self.assertEqual(occurrences(told, "still alive"), 2, told)

    def test_a_command_that_reads_a_script_s_task_does_not_train(self):
        told = self.script(1, """
            import hetseq
            from mlp import Mlp
            class Mine(Mlp): pass
            print("trains")
            hetseq.train(Mine(), data="data.h5", batch_size=20, max_update=1, valid_data="data.h5", save_dir="run",
                         overwrite=True)
        """)
        self.assertEqual(occurrences(told, "(?m)^trains"), 1, told)
        before = (self.folder / "run/metrics.jsonl").read_text()
        told = self.hetseq(1, "evaluate", "run", code=78)
        self.assertIn('put the call of hetseq.train under if __name__ == "__main__":', told)
        self.assertEqual((self.folder / "run/metrics.jsonl").read_text(), before)

    def test_a_task_that_cannot_be_is_refused_in_words(self):
        self.script(1, """
            import torch, hetseq
            from mlp import Mlp

            class Complex(torch.nn.Module):
                def __init__(self):
                    super().__init__()
                    self.factor = torch.nn.Parameter(torch.ones(6, dtype=torch.complex64))

            def check(message, **own):
                try:
                    hetseq.train(type("T", (Mlp,), own)(), data="data.h5", batch_size=20, max_update=1)
                except hetseq.Error as error:
                    assert message in str(error), (message, str(error))
                else:
                    raise AssertionError(message)

            nll = lambda model, batch: Mlp.forward(None, model, batch)["nll"]
            check("losses is the text 'nll'", losses="nll")
            check("defaults names the optimizer 'adamw', and the task has a method optimizer",
                  defaults={"optimizer": "adamw"}, optimizer=lambda self, groups, lr: torch.optim.NAdam(groups, lr=lr))
            check("defaults names the lr-scheduler 'fixed', and the task has a method schedule",
                  defaults={"lr_scheduler": "fixed"}, schedule=lambda self, update, epoch, config: 0.1)
            check("the task's defaults name 'learning-rate'", defaults={"learning-rate": 0.1})
            check("did you mean max-sentences?", defaults={"max_sentence": 4})
            check("metrics is the text 'accuracy'", metrics="accuracy")
            check("fields is a list", fields=["x"])
            check("field 'x' has the shape 6", fields={"x": hetseq.Field(torch.float64, 6)})
            check("collate gave a NoneType", collate=lambda self, batch: None)
            check("collate gave list for 'text'", collate=lambda self, batch: {**batch, "text": ["a"] * len(batch["x"])})
            check("collate gave the shape (3,) for 'z'", collate=lambda self, batch: {**batch, "z": torch.zeros(3)})
            check("weights gave a NoneType", weights=lambda self, batch: None)
            check("weights gave -1.0", weights=lambda self, batch: -1)
            check("the sum of nll does not depend on a parameter",
                  forward=lambda self, model, batch: {"nll": nll(model, batch).detach()})
            check("parameter 'factor' is torch.complex64", model=lambda self, config: Complex())
            check("parameter '0.weight' has no shape yet",
                  model=lambda self, config: torch.nn.Sequential(torch.nn.LazyLinear(3)))
            try:
                hetseq.train(Mlp(), data="data.h5", max_update=1, batch_size=20, **{"batch-size": 10})
            except hetseq.Error as error:
                assert "batch_size and batch-size are the same option" in str(error), str(error)
            else:
                raise AssertionError("two spellings")
            check("a group of param_groups has no 'params'", param_groups=lambda self, model: [{"lr_factor": 0.5}])
        """)

    def test_what_depends_on_padding_or_is_drawn_in_collate_is_refused(self):
        with h5py.File(self.folder / "ragged.h5", "w") as file:
            lengths = np.arange(1, 21)
            file["ids"], file["ids_offsets"] = np.arange(210) % 11, np.concatenate([[0], lengths.cumsum()])
        self.script(1, """
            import random, torch, hetseq
            from torch import nn
            from torch.nn import functional as F

            class Ragged(hetseq.Task):
                fields = {"ids": hetseq.Ragged(torch.int64)}
                losses, metrics, tokens = ["nll"], ["right"], "ids"
                draw = random.Random(1)
                def model(self, config):
                    return nn.ModuleList([nn.Embedding(11, 8), nn.Linear(8, 11)])
                def mean(self, x, mask):
                    return (x * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)
                def metric(self, right):
                    return right.sum()
                def forward(self, model, batch):
                    mask = torch.arange(batch["ids"].shape[1]) < batch["ids_lengths"][:, None]
                    logits, first = model[1](self.mean(model[0](batch["ids"]), mask)), batch["ids"][:, 0]
                    sums = {"nll": F.cross_entropy(logits, first, reduction="sum")}
                    if not model.training:
                        sums["right"] = self.metric((logits.argmax(1) == first).double())
                    return sums

            def draw(self, batch):
                return {**batch, "ids": batch["ids"].clone().fill_(self.draw.randrange(11))}

            def check(message, **own):
                try:
                    hetseq.train(type("T", (Ragged,), own)(), data="ragged.h5", valid_data="ragged.h5", lr=1, batch_size=20,
                                 max_update=3, optimizer="sgd")
                except hetseq.Error as error:
                    assert message in str(error), (message, str(error))
                else:
                    assert not message, message

            check("")
            check("", collate=lambda self, batch: batch, weights=lambda self, batch: batch["ids_lengths"].sum())
            check("depends on how far rows are padded", mean=lambda self, x, mask: x.mean(1))
            check("collate gives another 'ids' when it is called again", collate=draw)
            check("the metric 'right' is a mean over the samples", metric=lambda self, right: right.mean())
            check("weights gives", weights=lambda self, batch: batch["ids"].numel())
        """)

    def test_a_part_in_torchscript_trains_as_the_part_itself(self):
        self.script(1, """
            import torch, hetseq
            from mlp import Mlp

            class Scripted(Mlp):
                def model(self, config):
                    model = super().model(config)
                    model[2] = torch.jit.script(model[2])
                    return model

            options = dict(data="data.h5", batch_size=20, max_update=3, lr=0.1)
            plain = hetseq.train(Mlp(), **options)
            scripted = hetseq.train(Scripted(), **options)
            for a, b in zip(plain.parameters(), scripted.parameters(), strict=True):
                assert (a - b).abs().max() < 1e-6
            task = Scripted()
            task.recompute = ["2"]
            try:
                hetseq.train(task, **options)
            except hetseq.Error as error:
                assert "recompute names '2', which is TorchScript" in str(error), str(error)
            else:
                raise AssertionError("recomputed")
        """)

    def test_options_of_numpy_and_plain_defaults_are_options(self):
        self.script(1, """
            import numpy as np, hetseq
            from mlp import Mlp
            class Plain(Mlp):
                options = {"width": 5}
            model = hetseq.train(Plain(), data="data.h5", batch_size=np.int64(20), max_update=1, lr=np.float64(0.1),
                                 overwrite=np.bool_(False), adam_betas=np.array([0.8, 0.9]))
            assert model[0].weight.shape == (5, 6)
        """)

    def test_a_late_or_interrupted_self_test_leaves_the_run_as_it_is(self):
        told = self.script(1, """
            import hetseq, torch
            from hetseq import self_test
            from mlp import Mlp

            class Scaled(torch.nn.Sequential):
                def __init__(self, *parts):
                    super().__init__(*parts)
                    self.register_buffer("scale", torch.ones(6))
                def forward(self, x):
                    return super().forward(x * self.scale)

            class Buffered(Mlp):
                def model(self, config):
                    return Scaled(*super().model(config))

            class Short(Mlp):
                calls = 0
                def forward(self, model, batch):
                    Short.calls += 1
                    if Short.calls == 2:
                        raise MemoryError
                    return super().forward(model, batch)

            words = dict(data="data.h5", batch_size=20, max_update=3)
            counts, choose_count = iter([1, 5]), self_test.choose_count
            self_test.choose_count = lambda model, rows, available: next(counts)
            hetseq.train(Buffered(), **words)
            assert next(counts, None) is None
            self_test.choose_count = choose_count
            hetseq.train(Short(), **words)
        """)
        self.assertIn("out of memory: micro-batch halved to 10 samples", told)

    def test_a_model_with_its_loss_takes_four_lines(self):
        self.script(1, """
            import torch, hetseq
            from torch.nn import functional as F
            model = torch.nn.Linear(6, 3)
            before = model.weight.clone()
            task = hetseq.task(model, {"x": hetseq.Field(torch.float32, (6,)), "y": hetseq.Field(torch.int64)},
                               loss=lambda model, batch: F.cross_entropy(model(batch["x"]), batch["y"], reduction="sum"))
            assert hetseq.train(task, data="data.h5", batch_size=20, max_update=3, lr=0.1) is model
            assert not torch.equal(model.weight.cpu(), before)
        """)


if __name__ == "__main__":
    unittest.main(verbosity=2)
