"""The models of inputs/python/gallery, dropout on: the result does not depend on how batches are cut."""

import importlib.util
import json
import unittest

from harness import ROOT, Case, capacities, largest_difference, need

need("torch", "numpy", "h5py", "safetensors", "transformers")

import numpy as np

SAMPLES = 320  # five updates

TASKS = f"""
    import sys
    import torch, hetseq
    from torch.nn import functional as F
    sys.path.insert(0, {str(ROOT / "inputs/python/gallery")!r})
    from transformers import BartConfig, BartForConditionalGeneration
    from vae import Vae
    from diffusion import Diffusion
    from lstm_tagger import Tagger
    from graphs import Triangles
    from resnet import ResNet
    from contrast import Contrast
    from experts import Experts
    from two_towers import TwoTowers
    from speech import Speech

    class Layerdrop(hetseq.Task):
        fields = {{"ids": hetseq.Field(torch.int64, (9,))}}
        losses = ["nll"]
        def model(self, config):
            return BartForConditionalGeneration(BartConfig(
                vocab_size=40, d_model=16, encoder_layers=3, decoder_layers=3, encoder_attention_heads=4,
                decoder_attention_heads=4, encoder_ffn_dim=32, decoder_ffn_dim=32, max_position_embeddings=32,
                encoder_layerdrop=0.4, decoder_layerdrop=0.4, pad_token_id=0, bos_token_id=1, eos_token_id=2))
        def forward(self, model, batch):
            logits = model(input_ids=batch["ids"], labels=batch["ids"]).logits
            return F.cross_entropy(logits.flatten(0, 1), batch["ids"].flatten(), reduction="sum")

    class Compiled:
        def model(self, config):
            return torch.compile(super().model(config), backend="aot_eager")

    class Checkpointed:
        def model(self, config):
            model = super().model(config)
            model.gradient_checkpointing_enable({{"use_reentrant": False}})
            return model

    class Bfloat16:
        def forward(self, model, batch):
            with torch.autocast("cpu", torch.bfloat16):
                return super().forward(model, batch)

    class CompiledVae(Compiled, Vae): pass
    class CompiledDiffusion(Compiled, Diffusion): pass
    class CompiledContrast(Compiled, Contrast): pass
    class CheckpointedLayerdrop(Checkpointed, Layerdrop): pass
    class CheckpointedSpeech(Checkpointed, Speech): pass
    class CheckpointedExperts(Checkpointed, Experts): pass
    class Bfloat16Speech(Bfloat16, Speech): pass
"""
DATA = {"Vae": "images", "Diffusion": "images", "Tagger": "words", "Triangles": "graphs", "Layerdrop": "ids", "Speech": "sounds",
        "CheckpointedLayerdrop": "ids", "Bfloat16Speech": "sounds"}
# Those that look at groups.
GROUPED = {"ResNet": "labelled", "Contrast": "images", "Experts": "tokens", "TwoTowers": "pairs"}
OPTIONS = {"ResNet": {"width": 4}, "Experts": {"width": 16, "layers": 2, "vocab_size": 40},
           "TwoTowers": {"width": 16, "vocab_size": 40}, "Speech": {"width": 16}}
# They take minutes, and other tests have compiled and checkpointed models.
TREATED = {"CompiledVae": "images", "CompiledDiffusion": "images", "CompiledContrast": "images", "CheckpointedSpeech": "sounds",
           "CheckpointedExperts": "tokens"}
OPTIONS |= {"CheckpointedSpeech": OPTIONS["Speech"], "Bfloat16Speech": OPTIONS["Speech"], "CheckpointedExperts": OPTIONS["Experts"]}
OTHERS = ("timm", "peft")  # of more packages than the other tests need


class GalleryTest(Case):
    def setUp(self):
        super().setUp()
        import sys

        from hetseq import write_shards
        sys.path.insert(0, str(ROOT / "inputs/python/gallery"))
        from graphs import graph
        draw = np.random.default_rng(3)

        def words():
            length = min(1 + draw.geometric(0.2), 30)  # few are long, so that batches are padded unlike
            ids = draw.integers(0, 30, length)
            return {"input_ids": ids.astype(np.int32), "labels": (ids % 3).astype(np.int8)}

        def image():
            return {"images": draw.integers(0, 256, (28, 28), dtype=np.uint8)}

        def labelled():
            return {**image(), "labels": draw.integers(0, 10)}

        def ids():
            return {"ids": draw.integers(3, 40, 9)}

        def tokens():
            return {"input_ids": draw.integers(3, 40, 9)}

        def pair():
            return {"images": draw.integers(0, 256, (3, 32, 32), dtype=np.uint8), "input_ids": draw.integers(3, 40, 16)}

        def sound():
            return {"sound": draw.normal(size=800).astype(np.float32), "label": draw.integers(0, 10)}

        ragged = {"words": ["input_ids", "labels"], "graphs": ["kinds", "sources", "targets"]}
        for name, make in (("images", image), ("words", words), ("graphs", lambda: graph(draw)), ("ids", ids),
                           ("labelled", labelled), ("tokens", tokens), ("pairs", pair), ("sounds", sound)):
            write_shards((make() for _ in range(SAMPLES)), self.folder, name=name, ragged=ragged.get(name, []))
        self.write("tasks.py", TASKS)

    def train(self, ranks, suffix, tasks=DATA, **options):
        self.run_ranks(ranks, self.write("script.py", f"""
            import hetseq, tasks
            for name, data in {tasks!r}.items():
                task = getattr(tasks, name)()
                task.self_test, task.defaults = {ranks} == 1 and name != "ResNet", {{}}  # whose test takes long
                hetseq.train(task, data=data + "-0*.h5", valid_data=data + "-0*.h5", batch_size=64, balance="declared",
                             optimizer="sgd", lr=1e-5 if name == "Triangles" else 1e-3, max_update=5, dropout=0.2,
                             save_dir=name + {suffix!r}, **{options!r}, **{OPTIONS!r}.get(name, {{}}))
        """), seconds=600)

    def validation(self, run):
        lines = [json.loads(line) for line in (self.folder / run / "metrics.jsonl").read_text().splitlines()]
        return [line["loss"] for line in lines if line["kind"] == "valid"]

    def compare(self, tasks):
        for task in tasks:
            with self.subTest(task):
                self.assert_near(task, 1e-5)
                one, three = (self.validation(f"{task}-{n}") for n in (1, 3))
                self.assertEqual(len(one), 1)
                self.assertAlmostEqual(one[0], three[0], delta=1e-5 * abs(one[0]))

    def compare_groups(self, tasks):
        options = {"norm_group": 8}
        self.train(1, "-1", tasks, max_sentences=64, **options)
        self.train(3, "-3", tasks, max_sentences=capacities(8, 56, 0), **options)
        self.compare(tasks)

    def test_one_rank_and_ranks_of_7_57_and_0_samples_agree(self):
        self.train(1, "-1", max_sentences=64)
        self.train(3, "-3", max_sentences=capacities(7, 57, 0))
        self.compare(DATA)

    def test_groups_of_8_on_one_rank_and_on_ranks_of_8_56_and_0_samples_agree(self):
        self.compare_groups(GROUPED)

    def treated(self):
        """Not one of ctest's: `python tests/python/gallery_test.py GalleryTest.treated` runs it."""
        self.compare_groups(TREATED)


@unittest.skipUnless(all(map(importlib.util.find_spec, OTHERS)), "needs timm and peft")
class OtherPackagesTest(Case):
    def train(self, ranks, task, runs):
        """Runs by name, with their options, in one process a rank."""
        self.run_ranks(ranks, self.write("script.py", f"""
            import sys
            sys.path.insert(0, {str(ROOT / "inputs/python/gallery")!r})
            import hetseq
            from {task[0]} import {task[1]} as Task
            for run, options in {runs!r}.items():
                task = Task()
                task.self_test, task.defaults = {ranks} == 1, {{}}
                hetseq.train(task, data="data-0*.h5", batch_size=32, balance="declared", optimizer="sgd", lr=1e-2,
                             max_update=3, dropout=0.1, save_dir=f"{{run}}-{ranks}", **options)
        """))

    def compare(self, task, runs, samples):
        self.train(1, task, {run: {**options, "max_sentences": 32} for run, options in runs.items()})
        self.train(3, task, {run: {**options, "max_sentences": capacities(*samples)} for run, options in runs.items()})
        for run in runs:
            with self.subTest(run):
                self.assert_near(run, 1e-6)

    def test_networks_of_timm(self):
        from hetseq import write_shards
        draw = np.random.default_rng(1)
        write_shards(({"images": draw.integers(0, 256, (28, 28), dtype=np.uint8), "labels": draw.integers(0, 10)}
                      for _ in range(96)), self.folder, name="data")
        networks = ("test_efficientnet", "test_resnet")
        self.compare(("timm_images", "Images"), {
            network: {"network": network, "norm_group": 8, "precision": "fp64"} for network in networks}, (8, 24, 0))

    def test_adapters_of_peft_on_a_model_in_a_folder(self):
        from hetseq import write_shards
        from transformers import LlamaConfig, LlamaForCausalLM
        draw = np.random.default_rng(1)
        write_shards(({"input_ids": draw.integers(3, 40, 9)} for _ in range(96)), self.folder, name="data")
        LlamaForCausalLM(LlamaConfig(vocab_size=40, hidden_size=16, intermediate_size=32, num_hidden_layers=2,
                                     num_attention_heads=2, num_key_value_heads=1)).save_pretrained(self.folder / "base")
        self.compare(("lora", "Lora"), {"adapters": {"model_config": "base"}}, (7, 25, 0))
        self.assertFalse((self.folder / "adapters-1/config.json").exists())  # the names are not those of a Llama
        self.run_ranks(1, self.write("after.py", """
            import hetseq, peft, torch
            from transformers import AutoModelForCausalLM
            trained, base = hetseq.load("adapters-1"), AutoModelForCausalLM.from_pretrained("base")
            trained.save_pretrained("alone")
            x, loaded = torch.arange(3, 12)[None], peft.PeftModel.from_pretrained(base, "alone").eval()
            assert torch.equal(trained(x).logits, loaded(x).logits)
            with loaded.disable_adapter():
                assert not torch.equal(trained(x).logits, loaded(x).logits)
        """))
        self.run_ranks(2, self.write("continued.py", f"""
            import sys
            sys.path.insert(0, {str(ROOT / "inputs/python/gallery")!r})
            import hetseq
            from lora import Lora
            task = Lora()
            task.self_test, task.defaults = False, {{}}
            options = dict(data="data-0*.h5", model_config="base", batch_size=32, balance="declared", optimizer="sgd", lr=1e-2,
                           max_update=3, dropout=0.1, max_sentences=20, save_dir="adapters-2")
            try:
                hetseq.train(task, stop_after=1, **options)
                raise SystemExit("it did not stop")
            except hetseq.Stopped:
                hetseq.train(task, **options)
        """))
        self.assertLess(largest_difference(*(self.folder / f"adapters-{ranks}/model.safetensors" for ranks in (1, 2))), 1e-6)


if __name__ == "__main__":
    unittest.main(verbosity=2)
