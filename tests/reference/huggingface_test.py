"""hetseq against transformers, both ways: models that save_pretrained wrote are evaluated and trained, and what hetseq
exports is loaded by each class."""

import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / "python")]

from harness import Case, environment, need, tensors

need("torch", "numpy", "h5py", "safetensors", "transformers")

import h5py
import numpy as np
import torch
import transformers
from transformers import (AutoConfig, AutoModelForMaskedLM, AutoTokenizer, BertConfig, BertForMaskedLM,
                          BertForPreTraining, BertForSequenceClassification, BertForTokenClassification, BertModel)

transformers.logging.set_verbosity_error()
torch.set_num_threads(1)

SMALL = dict(vocab_size=97, hidden_size=16, num_hidden_layers=2, num_attention_heads=4, intermediate_size=24,
             max_position_embeddings=24, initializer_range=0.3)
OPTIONS = [{}, {"hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 20,
                "max_position_embeddings": 20, "vocab_size": 111},
           {"hidden_act": "gelu_new", "num_attention_heads": 1}, {"hidden_act": "gelu_pytorch_tanh", "pad_token_id": None},
           {"hidden_act": "relu", "layer_norm_eps": 1e-3}, {"hidden_act": "silu", "type_vocab_size": 4},
           {"hidden_act": "swish", "pad_token_id": 7},
           {"tie_word_embeddings": False, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.3}]
SAMPLES, LENGTH, PREDICTIONS = 20, 20, 4


def randomised(model, seed=1):
    """Biases and normalisations too."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return model


def write_shard(path, vocabulary=97, segments=2):
    """Pairs as NVIDIA's shards have them, of 5 to LENGTH tokens."""
    draw = np.random.default_rng(3)
    lengths = draw.integers(5, LENGTH + 1, SAMPLES)
    mask = (np.arange(LENGTH) < lengths[:, None]).astype(np.int8)
    positions = np.zeros((SAMPLES, PREDICTIONS), dtype=np.int32)
    labels = np.zeros((SAMPLES, PREDICTIONS), dtype=np.int32)
    for i, length in enumerate(lengths):
        count = draw.integers(1, PREDICTIONS + 1)
        positions[i, :count] = np.sort(draw.choice(np.arange(1, length), count, replace=False))
        labels[i, :count] = draw.integers(1, vocabulary, count)
    with h5py.File(path, "w") as file:
        file["input_ids"] = draw.integers(1, vocabulary, (SAMPLES, LENGTH)).astype(np.int32) * mask
        file["input_mask"] = mask
        file["segment_ids"] = draw.integers(0, segments, (SAMPLES, LENGTH)).astype(np.int8) * mask
        file["masked_lm_positions"] = positions
        file["masked_lm_ids"] = labels
        file["next_sentence_labels"] = draw.integers(0, 2, SAMPLES).astype(np.int8)


def inputs_of(shard):
    with h5py.File(shard) as file:
        ids, mask, segments = (torch.from_numpy(file[name][:].astype(np.int64))
                               for name in ("input_ids", "input_mask", "segment_ids"))
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": segments}


def losses_of(model, shard):
    """transformers' mean losses over masked tokens and sequences."""
    with h5py.File(shard) as file:
        positions, labels, following = (torch.from_numpy(file[name][:].astype(np.int64)) for name in
                                        ("masked_lm_positions", "masked_lm_ids", "next_sentence_labels"))
    with torch.no_grad():
        output = model(**inputs_of(shard))
    sample, entry = labels.nonzero(as_tuple=True)
    cross_entropy = torch.nn.functional.cross_entropy
    return {"mlm": cross_entropy(output.prediction_logits[sample, positions[sample, entry]],
                                 labels[sample, entry]).item(),
            "nsp": cross_entropy(output.seq_relationship_logits, following).item()}


def loaded(kind, folder, **options):
    """The model in fp32 and evaluation mode, and the names that transformers did not find in the file."""
    model, info = kind.from_pretrained(folder, output_loading_info=True, **options)
    assert not info["unexpected_keys"] or kind is not BertForPreTraining, info
    return model.eval(), set(info["missing_keys"])


class Exchange(Case):
    def run_hetseq(self, *words, code=0, lines=None):
        """What it printed on standard output, and on standard error. `lines` are its standard input."""
        run = subprocess.run([os.environ["HETSEQ_PROGRAM"], *map(str, words)], cwd=self.folder, env=environment(),
                             input=lines, capture_output=True, text=True, timeout=240)
        self.assertEqual(run.returncode, code, run.stdout + run.stderr)
        return run.stdout, run.stderr

    def shard(self, config=None):
        path = self.folder / "train.h5"
        write_shard(path, *((config.vocab_size, config.type_vocab_size) if config else ()))
        return path

    def evaluated(self, model, shard, *options):
        out, said = self.run_hetseq("evaluate", "--task", "bert", "--init-model", model, "--data", shard, "--precision",
                                    "fp64", "--json", *options)
        return json.loads(out), said

    def train(self, model, shard, run, updates, *options):
        return self.run_hetseq("train", "--task", "bert", "--init-model", model, "--data", shard, "--max-sentences", 10,
                               "--max-update", updates, "--lr", "1e-3", "--lr-scheduler", "fixed", "--threads", 1,
                               "--save-dir", run, *options)

    def predicted(self, run, shard):
        path = self.folder / "predictions.h5"
        self.run_hetseq("predict", run, "--data", shard, "--output", path, "--overwrite")
        with h5py.File(path) as file:
            return {name: torch.from_numpy(file[name][:]) for name in ("embeddings", "next_sentence")}

    def assert_close(self, ours, theirs, tolerance):
        difference = (ours - theirs).abs().max().item()
        self.assertLess(difference, tolerance)
        return difference

    def assert_same_losses(self, ours, theirs, tolerance):
        for name, value in theirs.items():
            self.assertAlmostEqual(ours[name] / value, 1, delta=tolerance, msg=name)


class OptionsTest(Exchange):
    def check_classes(self, folder, run, shard):
        """Outputs in evaluation mode, fp32, of each class; returns the largest difference."""
        inputs, ours = inputs_of(shard), self.predicted(run, shard)
        model, missing = loaded(BertForPreTraining, folder, attn_implementation="eager")
        self.assertEqual(missing, set())
        with torch.no_grad():
            hidden = model.bert(**inputs).last_hidden_state
            next_sentence = model(**inputs).seq_relationship_logits.softmax(1)
        differences = [self.assert_close(ours["next_sentence"], next_sentence, 1e-5)]
        self.assert_same_losses(self.evaluated(folder, shard)[0], losses_of(model.double(), shard), 1e-9)
        for kind in (BertModel, BertForTokenClassification, BertForSequenceClassification):
            model, missing = loaded(kind, folder, attn_implementation="eager")
            heads = set() if kind is BertModel else {"classifier.weight", "classifier.bias"}
            self.assertEqual(missing, heads, kind)
            body = model if kind is BertModel else model.bert
            with torch.no_grad():
                output = body(**inputs)
            differences.append(self.assert_close(output.last_hidden_state, hidden, 1e-5))
            if kind is not BertForTokenClassification:
                differences.append(self.assert_close(ours["embeddings"], output.pooler_output, 1e-5))
        return max(differences)

    def test_each_option_both_ways(self):
        for options in OPTIONS:
            with self.subTest(options):
                config = BertConfig(**{**SMALL, **options})
                name = "-".join(map(str, options.values())) or "small"
                theirs, run, export = (self.folder / f"{kind}-{name}" for kind in ("theirs", "run", "export"))
                model = randomised(BertForPreTraining(config)).eval()
                model.save_pretrained(theirs)
                shard = self.shard(config)

                self.assert_same_losses(self.evaluated(theirs, shard)[0], losses_of(model.double(), shard), 1e-9)

                self.train(theirs, shard, run, 2)
                self.train(theirs, shard, run, 3)  # continues
                self.assertEqual(json.loads((run / "summary.json").read_text())["updates"], 3)
                self.run_hetseq("checkpoint", "export", run, "--format", "hf", export)
                difference = self.check_classes(export, run, shard)
                print(f"{options}: largest difference {difference:.2g}")
                self.assertNotEqual(tensors(export / "model.safetensors")["bert.pooler.dense.bias"].sum(),
                                    tensors(theirs / "model.safetensors")["bert.pooler.dense.bias"].sum())
                read = AutoConfig.from_pretrained(export)
                for key in (*SMALL, *options):
                    self.assertEqual(getattr(read, key),
                                     "silu" if options.get(key) == "swish" else
                                     "gelu_new" if options.get(key) == "gelu_pytorch_tanh" else getattr(config, key))


class FilesTest(Exchange):
    def setUp(self):
        super().setUp()
        self.data = self.shard()
        self.model = randomised(BertForPreTraining(BertConfig(**SMALL))).eval()

    def save(self, model, name, **options):
        folder = self.folder / name
        model.save_pretrained(folder, **options)
        return folder

    def test_a_model_in_several_files(self):
        folder = self.save(self.model, "sharded", max_shard_size="8KB")
        self.assertTrue((folder / "model.safetensors.index.json").exists())
        expected = losses_of(self.model.double(), self.data)

        for given in (folder, folder / "model.safetensors.index.json"):
            self.assert_same_losses(self.evaluated(given, self.data)[0], expected, 1e-9)
        self.run_hetseq("checkpoint", "export", folder, self.folder / "joined")
        self.assert_same_losses(losses_of(loaded(BertForPreTraining, self.folder / "joined")[0].double(), self.data),
                                expected, 1e-9)

    def test_weights_of_half_precision(self):
        for precision in (torch.float16, torch.bfloat16):
            folder = self.save(self.model.to(precision), str(precision)[6:])
            self.assertEqual(tensors(folder / "model.safetensors")["cls.predictions.bias"].dtype, precision)
            ours, _ = self.evaluated(folder, self.data)
            self.assert_same_losses(ours, losses_of(self.model.double(), self.data), 1e-9)

    def test_heads_that_a_file_lacks_are_drawn(self):
        pooler, nsp = "bert.pooler.dense.weight", "cls.seq_relationship.weight"
        for kind, drawn, kept in ((BertModel, [nsp, "cls.predictions.bias"], [pooler]),
                                  (BertForMaskedLM, [nsp, pooler], ["cls.predictions.bias"]),
                                  (BertForTokenClassification, [nsp, pooler], [])):
            with self.subTest(kind.__name__):
                torch.manual_seed(2)
                model = randomised(kind(BertConfig(**SMALL)))
                folder, run = self.save(model, kind.__name__), self.folder / f"run-{kind.__name__}"
                said = self.train(folder, self.data, run, 1, "--lr", "0", "--weight-decay", "0")[1]
                self.assertIn("drawn from the seed are", said)
                self.assertEqual("classifier.weight" in said, kind is BertForTokenClassification, said)
                theirs = {name if name.startswith(("bert.", "cls.", "classifier.")) else f"bert.{name}": value
                          for name, value in tensors(folder / "model.safetensors").items()}
                ours = tensors(run / "model.safetensors")
                for name, value in ours.items():
                    if name in theirs:
                        self.assertTrue((value == theirs[name]).all(), name)
                for name in drawn:
                    self.assertNotIn(name, theirs)
                for name in kept:
                    self.assertIn(name, theirs)

    def test_a_pickle_is_refused_and_its_message_converts_it(self):
        folder = self.save(self.model, "pickled")
        (folder / "model.safetensors").unlink()
        torch.save(self.model.state_dict(), folder / "pytorch_model.bin")

        said = self.run_hetseq("evaluate", "--task", "bert", "--init-model", folder, "--data", self.data, code=65)[1]

        self.assertIn("pytorch_model.bin is a pickle", said)
        command = re.search(r'python3 -c "(.*)"$', said, re.MULTILINE).group(1)
        subprocess.run([sys.executable, "-c", command], check=True, timeout=120)
        self.assert_same_losses(self.evaluated(folder, self.data)[0], losses_of(self.model.double(), self.data), 1e-9)

    def test_what_is_not_supported_is_refused(self):
        folder = self.save(self.model, "other")
        text = json.loads((folder / "config.json").read_text())
        for key, value in (("position_embedding_type", "relative_key"), ("is_decoder", True),
                           ("add_cross_attention", True), ("hidden_act", "gelu_10"), ("model_type", "roberta")):
            (folder / "config.json").write_text(json.dumps({**text, key: value}))
            said = self.run_hetseq("evaluate", "--task", "bert", "--init-model", folder, "--data", self.data,
                                   code=78)[1]
            self.assertIn(f"{folder}/config.json: {key} is", said)


class TextTest(Exchange):
    def check_tokenizer_json(self, tokenizer, cased):
        """Of the tokenizer that save_pretrained writes, hetseq takes the vocabulary."""
        folder = self.folder / f"tokenizer{len(cased)}"
        tokenizer.save_pretrained(folder)
        self.assertFalse((folder / "vocab.txt").exists())
        for vocabulary in ("vocab.txt", folder / "tokenizer.json"):
            data = self.folder / f"data-{len(cased)}-{pathlib.Path(vocabulary).name}"
            self.run_hetseq("prepare", "bert", "--input", "text.txt", "--vocab", vocabulary, "--output", data, *cased)
            self.assertEqual((data / "vocab.txt").read_bytes(), (self.folder / "vocab.txt").read_bytes())

    def test_a_run_keeps_the_vocabulary_of_tokenizer_json(self):
        shard = self.shard()
        model, folder = randomised(BertForPreTraining(BertConfig(**SMALL))), self.folder / "theirs"
        model.save_pretrained(folder)
        pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"p{i}" for i in range(92))]
        self.write("vocab.txt", "\n".join(pieces) + "\n")
        transformers.BertTokenizer(str(self.folder / "vocab.txt"), do_lower_case=False).save_pretrained(folder)
        self.train(folder, shard, self.folder / "run", 1)
        self.run_hetseq("checkpoint", "export", "run", "export")
        tokenizer = AutoTokenizer.from_pretrained(self.folder / "export")
        self.assertEqual(tokenizer.convert_ids_to_tokens(list(range(97))), pieces)
        self.assertEqual(tokenizer.tokenize("P1 p2"), ["[UNK]", "p2"])

    def test_the_exported_tokenizer_gives_hetseqs_ids(self):
        text = "".join(f"The boat {i} flows over Élan hills.\nOld Bridges stand!\n\n" for i in range(40))
        self.write("text.txt", text)
        self.write("config.json", json.dumps({**SMALL, "vocab_size": 120, "max_position_embeddings": 64}))
        for cased in ([], ["--cased"]):
            with self.subTest(cased):
                self.run_hetseq("prepare", "vocabulary", "--input", "text.txt", "--vocab-size", 120, "--output",
                                "vocab.txt", "--overwrite", *cased)
                self.run_hetseq("prepare", "bert", "--input", "text.txt", "--vocab", "vocab.txt", "--output", "data",
                                "--seq-length", 32, "--max-predictions", 5, "--overwrite", *cased)
                run, export = self.folder / f"run{len(cased)}", self.folder / f"export{len(cased)}"
                self.run_hetseq("train", "--task", "bert", "--model-config", "config.json", "--data", "data/*.h5",
                                "--max-update", 2, "--threads", 1, "--save-dir", run)
                self.run_hetseq("checkpoint", "export", run, export)
                tokenizer = AutoTokenizer.from_pretrained(export)
                self.assertEqual(tokenizer.model_max_length, 64)
                lines = [line for line in text.splitlines() if line][:20]
                ours = subprocess.run([os.environ["HETSEQ_PROGRAM"], "tokenize", "--vocab", "vocab.txt", *cased],
                                      input="\n".join(lines) + "\n", cwd=self.folder, check=True, timeout=60,
                                      capture_output=True, text=True).stdout.splitlines()
                theirs = [tokenizer(line, add_special_tokens=False)["input_ids"] for line in lines]
                self.assertEqual([list(map(int, line.split())) for line in ours], theirs)
                self.check_tokenizer_json(tokenizer, cased)
                model = AutoModelForMaskedLM.from_pretrained(export).eval()
                masked = tokenizer("the boat [MASK] over", return_tensors="pt")
                self.assertEqual((masked["input_ids"] == tokenizer.mask_token_id).sum(), 1)
                with torch.no_grad():
                    self.assertEqual(model(**masked).logits.shape[-1], 120)


class PythonTaskTest(Exchange):
    """Runs of tasks in Python: those whose module is one of transformers' are exported under their names."""

    TASKS = """
        import torch, hetseq
        from torch.nn import functional as F
        from transformers import BertConfig, BertForSequenceClassification

        class Bert(hetseq.Task):
            fields = {"ids": hetseq.Field(torch.int64, (8,)), "label": hetseq.Field(torch.int64)}
            def model(self, config):
                return BertForSequenceClassification(BertConfig(
                    vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=24,
                    max_position_embeddings=16, id2label={0: "bad", 1: "good", 2: "unknown"}))
            def forward(self, model, batch):
                return F.cross_entropy(model(input_ids=batch["ids"]).logits, batch["label"], reduction="sum")

        class Plain(hetseq.Task):
            fields = Bert.fields
            def model(self, config):
                return torch.nn.Sequential(torch.nn.Embedding(50, 3), torch.nn.Flatten(), torch.nn.Linear(24, 3))
            def forward(self, model, batch):
                return F.cross_entropy(model(batch["ids"]), batch["label"], reduction="sum")

        if __name__ == "__main__":
            for task in (Bert(), Plain()):
                hetseq.train(task, data="train.h5", batch_size=8, max_update=2, save_dir=type(task).__name__)
    """

    def setUp(self):
        super().setUp()
        if not os.path.exists(os.environ["HETSEQ_PYTHON_LIBRARY"]):
            self.skipTest("the library of the Python package is not built")
        draw = np.random.default_rng(2)
        with h5py.File(self.folder / "train.h5", "w") as file:
            file["ids"] = draw.integers(0, 50, (32, 8))
            file["label"] = draw.integers(0, 3, 32)
        self.run_ranks(1, self.write("tasks.py", self.TASKS))

    def test_a_model_of_transformers_is_exported_and_another_is_refused(self):
        self.run_hetseq("checkpoint", "export", "Bert", "export")
        model, missing = loaded(BertForSequenceClassification, self.folder / "export")
        self.assertEqual(missing, set())
        self.assertEqual(model.config.architectures, ["BertForSequenceClassification"])
        self.assertEqual(model.config.id2label, {0: "bad", 1: "good", 2: "unknown"})
        for name, value in tensors(self.folder / "Bert/model.safetensors").items():
            self.assertTrue((model.state_dict()[name] == value).all(), name)

        said = self.run_hetseq("checkpoint", "export", "Plain", "refused", code=78)[1]
        self.assertIn("transformers has no model like that of Plain", said)
        self.assertIn("safetensors.torch.load_file", said)
        self.assertFalse((self.folder / "refused").exists())


if __name__ == "__main__":
    unittest.main(verbosity=2)
