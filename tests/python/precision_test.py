"""Tasks in 16 bits: torch's autocast, as plain PyTorch has it."""

import json
import unittest

from harness import Case, largest_difference, need

need("torch", "numpy", "h5py", "safetensors", "transformers")

import h5py
import numpy as np

TASKS = """
    import torch, hetseq
    from torch.nn import functional as F
    from transformers import GPT2Config, GPT2LMHeadModel

    class Gpt2(hetseq.Task):
        fields = {"ids": hetseq.Field(torch.int64, (16,))}
        losses = ["nll"]
        def model(self, config):
            return GPT2LMHeadModel(GPT2Config(
                vocab_size=50, n_positions=16, n_embd=32, n_layer=2, n_head=4, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0))
        def weights(self, batch):
            return batch["ids"][:, 1:].numel()
        def forward(self, model, batch):
            logits = model(input_ids=batch["ids"]).logits[:, :-1]
            return F.cross_entropy(logits.flatten(0, 1), batch["ids"][:, 1:].flatten(), reduction="sum")

    class Dropping(Gpt2):
        def model(self, config):
            return GPT2LMHeadModel(GPT2Config(vocab_size=50, n_positions=16, n_embd=32, n_layer=2, n_head=4))

    class Seen(Gpt2):
        '''Says which type a linear layer gives, inside and outside an autocast of its own.'''
        def forward(self, model, batch):
            if model.training:
                x, w = torch.ones(2, 2), torch.ones(2, 2)
                with torch.autocast("cpu", enabled=False):
                    wide = F.linear(x, w).dtype
                print("TYPES", F.linear(x, w).dtype, wide, flush=True)
            return super().forward(model, batch)

    class Bits(Gpt2):
        '''Looks at the bits of fp32, so that it does not run in fp64.'''
        def forward(self, model, batch):
            words = model.transformer.wte(batch["ids"])
            positive = (words.view(torch.int32) >= 0).to(words.dtype)
            return super().forward(model, batch) + 1e-3 * (words * positive).sum()

    class Coarse(Gpt2):
        def forward(self, model, batch):
            return -model(input_ids=batch["ids"]).logits.log_softmax(-1)[..., 3].sum()

    class Numbers(Gpt2):
        '''Has an operator that is not made for bf16.'''
        def forward(self, model, batch):
            product = F.linear(torch.eye(2), torch.eye(2))
            numbers = product.numpy()
            return super().forward(model, batch) + 0.0 * float(numbers.sum())
"""
BATCH, UPDATES = 32, 4


class PrecisionTest(Case):
    def setUp(self):
        super().setUp()
        self.write("tasks.py", TASKS)
        with h5py.File(self.folder / "ids.h5", "w") as file:
            file["ids"] = np.random.default_rng(2).integers(0, 50, (BATCH, 16))  # each update is of all samples
        self.options = ["--data", "ids.h5", "--batch-size", BATCH, "--max-update", UPDATES, "--optimizer", "adamw", "--lr",
                        1e-2, "--weight-decay", 0, "--clip-norm", 0, "--lr-scheduler", "fixed", "--cache-dir", "none", "--log-interval",
                        1]

    def losses(self, run):
        lines = [json.loads(line) for line in (self.folder / run / "metrics.jsonl").read_text().splitlines()]
        return [line["loss"] for line in lines if line["kind"] == "train"]

    def test_losses_are_those_of_torchs_autocast(self):
        for precision in ("bf16", "fp32"):
            self.hetseq(1, "train", "tasks.py:Gpt2", "--save-dir", precision, "--precision", precision, "--max-sentences", BATCH,
                        *self.options)
        out = self.run_ranks(1, self.write("plain.py", f"""
            import json
            import h5py, torch
            from torch.nn import functional as F
            import tasks
            ids = torch.from_numpy(h5py.File("ids.h5")["ids"][:])
            torch.manual_seed(1)
            model = tasks.Gpt2().model(None).train()
            optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0)
            losses = []
            for _ in range({UPDATES}):
                with torch.autocast("cpu", torch.bfloat16):
                    logits = model(input_ids=ids).logits[:, :-1]
                    loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            print("LOSSES", json.dumps(losses))
        """))
        plain = json.loads(out[out.index("LOSSES") + 7:].splitlines()[0])
        narrow, wide = self.losses("bf16"), self.losses("fp32")
        print(plain, narrow, wide)
        self.assertEqual(len(narrow), UPDATES)
        for a, b, c in zip(plain, narrow, wide):
            self.assertAlmostEqual(a, b, delta=0.002 * a)
            self.assertAlmostEqual(b, c, delta=0.01 * c)
        self.assertNotEqual(narrow, wide)

    def test_ranks_of_unlike_precision_come_near_one_rank(self):
        self.hetseq(1, "train", "tasks.py:Dropping", "--save-dir", "one", "--max-sentences", BATCH, *self.options)
        self.hetseq(3, "train", "tasks.py:Dropping", "--save-dir", "three", "--max-sentences", "0=8,1=24,2=0",
                    "--balance", "declared", "--precision", "0=bf16,1-2=fp32", *self.options)
        for a, b in zip(self.losses("one"), self.losses("three")):
            self.assertAlmostEqual(a, b, delta=0.01 * b)
        self.assertGreater(largest_difference(self.folder / "one/model.safetensors", self.folder / "three/model.safetensors"), 0)

    def test_an_autocast_of_its_own_works_inside(self):
        told = self.hetseq(1, "train", "tasks.py:Seen", "--precision", "bf16", "--max-sentences", BATCH, *self.options)
        self.assertIn("TYPES torch.bfloat16 torch.float32", told)
        told = self.hetseq(1, "train", "tasks.py:Seen", "--max-sentences", BATCH, *self.options)
        self.assertIn("TYPES torch.float32 torch.float32", told)

    def test_an_operator_that_has_no_16_bits_fails_once_with_its_traceback(self):
        told = self.hetseq(1, "train", "tasks.py:Numbers", "--precision", "bf16", "--max-sentences", BATCH, *self.options, code=78)
        self.assertEqual(told.count("product.numpy()"), 1, told)
        self.hetseq(1, "train", "tasks.py:Numbers", "--max-sentences", BATCH, *self.options)

    def test_the_self_test_compares_outside_autocast(self):
        self.hetseq(1, "train", "tasks.py:Bits", "--precision", "bf16", "--max-sentences", BATCH, *self.options)

    def test_a_sum_in_16_bits_is_named_once(self):
        told = self.hetseq(1, "train", "tasks.py:Coarse", "--precision", "bf16", "--max-sentences", BATCH, *self.options)
        self.assertEqual(told.count("forward gave 'nll' in bfloat16"), 1, told)
        told = self.hetseq(1, "train", "tasks.py:Coarse", "--max-sentences", BATCH, *self.options)
        self.assertNotIn("bfloat16", told)

    def test_a_script_may_give_a_list(self):
        self.run_ranks(2, self.write("script.py", f"""
            import hetseq, tasks
            hetseq.train(tasks.Gpt2(), data="ids.h5", batch_size={BATCH}, max_update=1, precision={{"0": "bf16", "1": "fp32"}},
                         save_dir="listed")
        """))
        self.assertIn("precision = 0=bf16,1=fp32\n", (self.folder / "listed/config.cfg").read_text())


if __name__ == "__main__":
    unittest.main(verbosity=2)
