"""hetseq's classifiers against those of transformers, both ways: what hetseq fine-tuned is exported and loaded, and
what save_pretrained wrote is evaluated and trained. Answers, losses, labels and pieces of text are compared."""

import json
import random
import shutil
import unittest

from huggingface_test import SMALL, Exchange, randomised

import h5py
import torch
import transformers
from harness import tensors
from transformers import (AutoTokenizer, BertConfig, BertForPreTraining, BertForSequenceClassification,
                          BertForTokenClassification, BertTokenizer)

transformers.logging.disable_progress_bar()

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PIECES = [",", ".", "-", "the", "boat", "hill", "old", "elan", "gout", "lung", "no", "new", "##s", "##man", "##ship"]
WORDS = ["the", "The", "boats", "Boatman", "hills,", "old", "Élan", "gout", "lung-s", "no.", "new", "unheard", "."]
TAGS = ["O", "B-Disease", "I-Disease", "B-Gene", "I-Gene"]
IGNORED = -100  # transformers' label of a token without loss
CONFIG = {**SMALL, "hidden_act": "relu", "layer_norm_eps": 1e-3, "num_attention_heads": 2, "classifier_dropout": 0.2,
          "initializer_range": 0.5}
SAMPLES, UPDATES, SEED = 24, 3, 2
TOLERANCE = 1e-5  # of probabilities and numbers in fp32; the texts' answers differ by much more


def some_words(draw, most):
    return [draw.choice(WORDS) for _ in range(draw.randint(1, most))]


def ragged(file, name):
    """One tensor for each sample."""
    values, offsets = torch.from_numpy(file[name][:].astype("int64")), file[f"{name}_offsets"][:]
    return [values[begin:end] for begin, end in zip(offsets, offsets[1:])]


def inputs_of(shard):
    """What transformers takes: padded rows of hetseq's ids."""
    with h5py.File(shard) as file:
        rows = ragged(file, "input_ids")
        second = file["second_segments"][:] if "second_segments" in file else map(len, rows)
    ids, mask, segments = (torch.zeros(len(rows), max(map(len, rows)), dtype=torch.int64) for _ in range(3))
    for i, (row, begin) in enumerate(zip(rows, second)):
        ids[i, :len(row)], mask[i, :len(row)], segments[i, begin:len(row)] = row, 1, 1
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": segments}


class Classifiers(Exchange):
    task = kind = None

    def setUp(self):
        super().setUp()
        torch.manual_seed(SEED)
        unused = [f"[unused{i}]" for i in range(SMALL["vocab_size"] - len(SPECIAL) - len(PIECES))]
        self.write("vocab.txt", "\n".join(SPECIAL + PIECES + unused) + "\n")

    def prepared(self, kind, table, *options):
        """The shard of a table's text."""
        path = self.folder / "table.tsv"
        path.write_text(table)
        self.run_hetseq("prepare", kind, "--input", path, "--vocab", "vocab.txt", "--output", "data", "--overwrite",
                        *options)
        return self.folder / "data/train-00000-of-00001.h5"

    def trained(self, model, shard, name, *options):
        """The run's folder."""
        self.run_hetseq("train", "--task", self.task, "--init-model", model, "--data", shard, "--batch-size",
                        SAMPLES // 2, "--max-tokens", 128, "--lr-scheduler", "fixed", "--threads", 1, "--save-dir",
                        name, *options)
        return self.folder / name

    def said_of(self, run, shard):
        """What `hetseq predict` writes of a shard."""
        self.run_hetseq("predict", run, "--data", shard, "--output", "predictions.h5", "--overwrite")
        with h5py.File(self.folder / "predictions.h5") as file:
            return {name: torch.from_numpy(file[name][:]) for name in file}

    def loaded_whole(self, folder):
        """The model in evaluation mode, for which transformers found all weights and no others."""
        model, info = self.kind.from_pretrained(folder, output_loading_info=True, attn_implementation="eager")
        for what, names in info.items():
            self.assertFalse(names, what)
        return model.eval()

    def check_loss(self, folder, model, shard):
        """The loss of all labels in fp64, transformers' by its own rule of `problem_type`."""
        out, _ = self.run_hetseq("evaluate", "--task", self.task, "--init-model", folder, "--data", shard,
                                 "--precision", "fp64", "--json")
        with torch.no_grad():
            expected = model.double()(**inputs_of(shard), labels=self.labels_of(shard)).loss.item()
        model.float()
        self.assert_same_losses(json.loads(out), {"loss": expected}, 1e-9)

    def check_labels(self, config, labels):
        self.assertEqual(config.architectures, [self.kind.__name__])
        self.assertEqual(config.num_labels, len(labels))
        self.assertEqual(config.id2label, dict(enumerate(labels)))
        self.assertEqual(config.label2id, {label: i for i, label in enumerate(labels)})

    def export_is_checked(self, shard, labels):
        """A pretrained network of transformers is fine-tuned, exported and loaded."""
        pretrained = self.folder / "pretrained"
        randomised(BertForPreTraining(BertConfig(**CONFIG))).save_pretrained(pretrained)
        run = self.trained(pretrained, shard, "tuned", "--max-update", UPDATES, "--lr", "0.003")
        self.assertEqual(json.loads((run / "summary.json").read_text())["updates"], UPDATES)
        self.run_hetseq("checkpoint", "export", run, "--format", "hf", "export", "--overwrite")
        export = self.folder / "export"
        model = self.loaded_whole(export)
        self.check_labels(model.config, labels)
        before = tensors(pretrained / "model.safetensors")["bert.encoder.layer.0.output.dense.bias"]
        self.assertFalse(torch.equal(model.bert.encoder.layer[0].output.dense.bias, before))
        self.check_answers(run, model, shard)
        self.check_loss(export, model, shard)
        return run, export, model

    def saved(self, **config):
        """A classifier of transformers, and its folder without a vocabulary."""
        if "id2label" in config:
            config["label2id"] = {label: i for i, label in config["id2label"].items()}
        model = randomised(self.kind(BertConfig(**CONFIG, **config)), seed=2).eval()
        model.save_pretrained(self.folder / "theirs")
        return model, self.folder / "theirs"

    def import_is_checked(self, shard, labels, save_vocabulary, **config):
        """A classifier of transformers gives the same answers in hetseq, and the same file when nothing was learned."""
        model, folder = self.saved(**config)
        save_vocabulary(folder)
        self.check_loss(folder, model, shard)
        run = self.trained(folder, shard, "still", "--max-update", 1, "--lr", 0, "--weight-decay", 0)
        self.check_answers(run, model, shard)
        self.check_labels(BertConfig.from_pretrained(run), labels)
        ours, theirs = (tensors(path / "model.safetensors") for path in (run, folder))
        self.assertEqual(ours.keys(), theirs.keys())
        for name, value in ours.items():
            self.assertTrue(torch.equal(value, theirs[name]), name)

    def copy_vocabulary(self, folder):
        shutil.copy(self.folder / "vocab.txt", folder)

    def save_tokenizer(self, folder):
        """As transformers saves it: the vocabulary stands in tokenizer.json."""
        BertTokenizer(str(self.folder / "vocab.txt")).save_pretrained(folder)
        self.assertFalse((folder / "vocab.txt").exists())


class TokenClassificationTest(Classifiers):
    task, kind = "token-classification", BertForTokenClassification

    def setUp(self):
        super().setUp()
        draw = random.Random(1)
        self.sentences = [some_words(draw, 7) for _ in range(SAMPLES)]
        lines = ["".join(f"{word}\t{draw.choice(TAGS)}\n" for word in words) for words in self.sentences]
        self.shard = self.prepared("ner", "\n".join(lines))
        with h5py.File(self.shard) as file:
            self.words = ragged(file, "words")

    def labels_of(self, shard):
        """Of the tokens that begin a word."""
        with h5py.File(shard) as file:
            of_words = ragged(file, "labels")
        labels = torch.full_like(inputs_of(shard)["input_ids"], IGNORED)
        for i, words in enumerate(self.words):
            labels[i, words] = of_words[i]
        return labels

    def check_answers(self, run, model, shard):
        """The likeliest label of every word, and its probability."""
        said = self.said_of(run, shard)
        with torch.no_grad():
            probabilities = model(**inputs_of(shard)).logits.softmax(2)
        of_words = torch.cat([probabilities[i, words] for i, words in enumerate(self.words)])
        self.assertGreater(len(said["labels"].unique()), 1)
        self.assert_close(said["probabilities"], of_words.max(1).values, TOLERANCE)
        chosen = of_words.gather(1, said["labels"].long().unsqueeze(1)).squeeze(1)
        self.assert_close(said["probabilities"], chosen, TOLERANCE)

    def test_an_export_answers_as_the_run_does(self):
        run, export, model = self.export_is_checked(self.shard, TAGS)

        tokenizer = AutoTokenizer.from_pretrained(export)
        expected = []
        with h5py.File(self.shard) as file:
            ids = ragged(file, "input_ids")
        for row, words, places in zip(ids, self.sentences, self.words):
            theirs = tokenizer(words, is_split_into_words=True, return_tensors="pt")
            self.assertEqual(theirs["input_ids"][0].tolist(), row.tolist())
            self.assertEqual([theirs.word_to_tokens(i).start for i in range(len(words))], places.tolist())
            with torch.no_grad():
                likeliest = model(**theirs).logits[0, places].argmax(1).tolist()
            expected.append("\t".join(f"{word} {model.config.id2label[i]}" for word, i in zip(words, likeliest)))
        out, _ = self.run_hetseq("predict", run, lines="".join(" ".join(words) + "\n" for words in self.sentences))
        self.assertEqual(out.splitlines(), expected)

    def test_a_model_of_transformers_gives_its_loss_and_answers(self):
        self.import_is_checked(self.shard, TAGS, self.copy_vocabulary, id2label=dict(enumerate(TAGS)))


class SequenceClassificationTest(Classifiers):
    task, kind = "sequence-classification", BertForSequenceClassification

    def table(self, texts, labels):
        """Rows of some texts and one of the labels, which may be a function."""
        draw, most = random.Random(2), 7 if texts == 1 else 3
        self.texts = [[" ".join(some_words(draw, most)) for _ in range(texts)] for _ in range(SAMPLES)]
        return "".join("\t".join([*row, labels(draw) if callable(labels) else draw.choice(labels)]) + "\n"
                       for row in self.texts)

    def data_of_labels(self):
        return self.prepared("classification", self.table(1, ["yes", "no", "perhaps"])), ["no", "perhaps", "yes"]

    def data_of_pairs(self):
        return self.prepared("classification", self.table(2, ["10", "9"]), "--pair-column", 2), ["9", "10"]

    def data_of_numbers(self):
        table = self.table(1, lambda draw: f"{draw.uniform(-2, 3):.6f}")
        return self.prepared("classification", table, "--numbers"), ["number"]

    def labels_of(self, shard):
        with h5py.File(shard) as file:
            labels = torch.from_numpy(file["labels"][:])
        return labels if labels.is_floating_point() else labels.long()

    def check_answers(self, run, model, shard):
        """The probability of every label, or the number."""
        said = self.said_of(run, shard)
        with torch.no_grad():
            logits = model(**inputs_of(shard)).logits
        if "numbers" in said:
            self.assertGreater(said["numbers"].std(), 100 * TOLERANCE)
            self.assert_close(said["numbers"], logits[:, 0], TOLERANCE)
        else:
            self.assertGreater(said["probabilities"].std(0).min(), 100 * TOLERANCE)
            self.assert_close(said["probabilities"], logits.softmax(1), TOLERANCE)
            self.assertTrue(torch.equal(said["labels"], said["probabilities"].argmax(1).int()))

    def check_lines(self, run, export, model):
        """Text in, answers out: the tokenizer in the export, and what hetseq prints."""
        tokenizer = AutoTokenizer.from_pretrained(export)
        out, _ = self.run_hetseq("predict", run, lines="".join("\t".join(row) + "\n" for row in self.texts))
        answers = out.splitlines()
        self.assertEqual(len(answers), len(self.texts))
        for answer, row in zip(answers, self.texts):
            with torch.no_grad():
                logits = model(**tokenizer(*row, return_tensors="pt")).logits[0]
            if model.config.problem_type == "regression":
                self.assertAlmostEqual(float(answer), logits[0].item(), delta=TOLERANCE)
                continue
            label, probability = answer.split("\t")
            self.assertEqual(label, model.config.id2label[logits.argmax().item()])
            self.assertAlmostEqual(float(probability), logits.softmax(0).max().item(), delta=TOLERANCE)

    def check_export(self, shard, labels, problem):
        run, export, model = self.export_is_checked(shard, labels)
        self.assertEqual(model.config.problem_type, problem)
        self.check_lines(run, export, model)

    def test_an_export_for_labels_answers_as_the_run_does(self):
        self.check_export(*self.data_of_labels(), "single_label_classification")

    def test_an_export_for_pairs_answers_as_the_run_does(self):
        self.check_export(*self.data_of_pairs(), "single_label_classification")

    def test_an_export_for_numbers_answers_as_the_run_does(self):
        self.check_export(*self.data_of_numbers(), "regression")

    def test_a_model_of_transformers_for_pairs_gives_its_loss_and_answers(self):
        shard, labels = self.data_of_pairs()
        self.import_is_checked(shard, labels, self.save_tokenizer, id2label=dict(enumerate(labels)))

    def test_a_model_of_transformers_for_numbers_gives_its_loss_and_answers(self):
        self.import_is_checked(*self.data_of_numbers(), self.save_tokenizer, num_labels=1)  # LABEL_0

    def test_labels_in_another_order_are_refused(self):
        shard, labels = self.data_of_labels()
        _, folder = self.saved(id2label=dict(enumerate(reversed(labels))))
        said = self.run_hetseq("evaluate", "--task", self.task, "--init-model", folder, "--data", shard, code=78)[1]
        self.assertIn(f"the labels of {folder} are not those of the data", said)


if __name__ == "__main__":
    unittest.main(verbosity=2)
