"""The moving average of the weights (--ema) beside plain PyTorch, over stops, other ranks, cut states and stages."""

import json
import unittest

from harness import Case, need, tensors

need("torch", "torch._dynamo", "numpy", "h5py", "safetensors")

SAMPLES, UPDATES, DECAY, LR = 48, 20, 0.9, 0.05

TASK = f"""
    import torch, hetseq
    from torch import nn
    from torch.nn import functional as F

    draw = torch.Generator().manual_seed(4)
    X = torch.randn({SAMPLES}, 8, generator=draw, dtype=torch.float64)
    Y = torch.randint(0, 3, ({SAMPLES},), generator=draw)

    def network():
        return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 3))

    class Points(hetseq.Task):
        fields = {{"x": hetseq.Field(torch.float64, (8,)), "y": hetseq.Field(torch.int64)}}
        losses = ["nll"]
        chain = "."
        defaults = {{"precision": "fp64", "optimizer": "sgd", "lr": {LR}, "device": "cpu", "momentum": 0.9, "batch-size": {SAMPLES},
                    "max-sentences": 16, "threads": 1, "save-minutes": 0, "save-interval-updates": {UPDATES}, "cache-dir": "cache"}}
        def model(self, config):
            return network()
        def dataset(self, config, split):
            return list(zip(X, Y))
        def forward(self, model, batch):
            return {{"nll": F.cross_entropy(model(batch["x"].to(next(model.parameters()).dtype)), batch["y"], reduction="sum")}}
"""

class AverageTest(Case):
    def setUp(self):
        super().setUp()
        self.write("task.py", TASK)

    def train(self, name, *words, ranks=1, code=0, updates=UPDATES):
        return self.hetseq(ranks, "train", "task.py:Points", "--save-dir", name, "--max-update", updates, *words, code=code)

    def reference(self):
        """The average after plain PyTorch's updates of all samples, from the values that hetseq begins with."""
        self.write("reference.py", f"""
            import torch, task
            from torch.nn import functional as F
            from safetensors.torch import save_file
            torch.manual_seed(1)  # as hetseq does before it calls the task's model
            model = task.network().double()
            optimizer = torch.optim.SGD(model.parameters(), lr={LR}, momentum=0.9)
            average = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn({DECAY}))
            average.update_parameters(model)  # the first call copies
            for _ in range({UPDATES}):
                optimizer.zero_grad()
                F.cross_entropy(model(task.X), task.Y, reduction="mean").backward()
                optimizer.step()
                average.update_parameters(model)
            save_file(average.module.state_dict(), "reference.safetensors")
            save_file(model.state_dict(), "weights.safetensors")
            """)
        self.run_ranks(1, "reference.py")

    def assert_near(self, a, b, most=1e-12):
        a, b = tensors(self.folder / a), tensors(self.folder / b)
        self.assertEqual(a.keys(), b.keys())
        for name in a:
            self.assertLess((a[name] - b[name]).abs().max().item(), most, name)

    def checkpoint(self, name):
        return f"{name}/checkpoints/update-{UPDATES:08}"

    def test_average_is_that_of_plain_pytorch(self):
        self.reference()
        self.train("whole", "--ema", DECAY, "--valid-data", "train")
        self.assert_near("whole/model.safetensors", "reference.safetensors")
        self.assert_near(f"{self.checkpoint('whole')}/model.safetensors", "weights.safetensors")
        self.assert_near(f"{self.checkpoint('whole')}/ema.safetensors", "reference.safetensors")
        # Each part begins where the one before was stopped.
        sharded = ("--shard", "optimizer")
        for ranks, words in (2, ("--virtual-workers", "0+1", "--stage-units", "2+5")), (3, sharded), (1, ()):
            self.train("parts", "--ema", DECAY, "--stop-after", 5, *words, ranks=ranks, code=75)
        self.train("parts", "--ema", DECAY, "--valid-data", "train", *sharded, ranks=2)
        self.assert_near("parts/model.safetensors", "reference.safetensors")
        self.assert_near(f"{self.checkpoint('parts')}/ema.safetensors", "reference.safetensors")

    def test_training_does_not_see_it_and_validation_does(self):
        self.train("with", "--ema", DECAY, "--valid-data", "train", "--valid-interval", 5)
        self.train("without", "--valid-data", "train", "--valid-interval", 5)
        weights = [(self.folder / path).read_bytes() for path in
                   (f"{self.checkpoint('with')}/model.safetensors", f"{self.checkpoint('without')}/model.safetensors")]
        self.assertTrue(weights[0] == weights[1])
        self.assertFalse((self.folder / self.checkpoint("without") / "ema.safetensors").exists())
        lines = [json.loads(line) for line in (self.folder / "with/metrics.jsonl").read_text().splitlines()]
        told = [line["loss"] for line in lines if line["kind"] == "valid"][-1]
        for words in ((), ("--checkpoint", "last")):
            text = self.hetseq(1, "evaluate", "with", *words, "--json")
            self.assertAlmostEqual(json.loads(text[text.index("{"):])["loss"], told, delta=1e-5)

    def test_a_script_gets_the_average(self):
        self.write("script.py", f"""
            import task, hetseq
            from safetensors.torch import save_file
            if __name__ == "__main__":
                module = hetseq.train(task.Points(), ema={DECAY}, max_update={UPDATES}, save_dir="run")
                save_file(module.state_dict(), "module.safetensors")
            """)
        self.run_ranks(1, "script.py")
        self.assert_near("module.safetensors", "run/model.safetensors", most=1e-15)

    def test_decay_is_fixed_with_the_optimizer(self):
        self.write("script.py", f"""
            import task, hetseq
            def refused(**options):
                try:
                    hetseq.train(task.Points(), max_update={UPDATES}, **options)
                except hetseq.Error as error:
                    assert "ema" in str(error), str(error)
                    return
                raise AssertionError(options)
            if __name__ == "__main__":
                hetseq.train(task.Points(), max_update=3, save_dir="run", ema={DECAY})
                refused(save_dir="run", ema=0.5)
                refused(save_dir="run")
                refused(save_dir="bad", ema=1)
                hetseq.train(task.Points(), max_update=5, save_dir="new", restore_file="run/checkpoints/update-00000003",
                             reset_optimizer=True, ema=0.5)
            """)
        self.run_ranks(1, "script.py")


if __name__ == "__main__":
    unittest.main()
