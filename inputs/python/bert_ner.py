"""A BERT of transformers, fine-tuned to find names in sentences (IOB2 columns: a word and its label a line).

    python inputs/python/bert_ner.py prepare VOCAB.txt data/ner train.tsv.gz devel.tsv.gz test.tsv.gz
    mpirun -np 2 python -m hetseq train inputs/python/bert_ner.py:Ner --data 'data/ner/train-*.h5' \
        --valid-data 'data/ner/devel-*.h5' --pretrained runs/bert-mini-novels --save-dir runs/ner
    mpirun -np 2 python -m hetseq predict runs/ner --data 'data/ner/test-*.h5' --output test-labels.h5
    python inputs/python/bert_ner.py score data/ner/test-*.h5 test-labels.h5
"""
import gzip
import pathlib
import sys

import h5py
import torch
from torch.nn import functional as F
from transformers import BertConfig, BertForTokenClassification, BertTokenizerFast

import hetseq

NAMES = ["O", "B-Disease", "I-Disease"]
NO_LABEL = -100  # of pieces that do not begin a word


class Ner(hetseq.Task):
    fields = {"input_ids": hetseq.Ragged(torch.int32, minimum=0, meaning="ids of the vocabulary"),
              "labels": hetseq.Ragged(torch.int8, padding=NO_LABEL, same_lengths_as="input_ids", is_target=True)}
    losses, metrics, tokens = ["nll"], ["accuracy"], "input_ids"
    options = {"pretrained": hetseq.Option("", "folder with a BERT's config.json and model.safetensors; empty: mini, from scratch")}
    defaults = {"optimizer": "adamw", "lr": 2e-4, "weight-decay": 0.01, "lr-scheduler": "polynomial_decay", "warmup-updates": 50,
                "clip-norm": 1, "batch-tokens": 1024, "max-tokens": 2048, "max-epoch": 5, "log-interval": 50}

    def model(self, config):
        if config.pretrained:
            return BertForTokenClassification.from_pretrained(config.pretrained, num_labels=len(NAMES))
        return BertForTokenClassification(BertConfig(
            hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024, num_labels=len(NAMES)))

    def weights(self, batch):
        return (batch["labels"] != NO_LABEL).sum()

    def scores(self, model, batch):
        lengths = batch["input_ids_lengths"]
        mask = torch.arange(batch["input_ids"].shape[1], device=lengths.device) < lengths[:, None]
        return model(input_ids=batch["input_ids"].long(), attention_mask=mask.long()).logits

    def forward(self, model, batch):
        scores, labels = self.scores(model, batch).flatten(0, 1), batch["labels"].long().flatten()
        sums = {"nll": F.cross_entropy(scores, labels, reduction="sum", ignore_index=NO_LABEL)}
        if not model.training:
            sums["accuracy"] = (scores.argmax(1) == labels).sum()
        return sums

    def predict(self, model, batch):
        best = self.scores(model, batch).argmax(-1).to(torch.int8)
        return {"labels": [row[:length] for row, length in zip(best, batch["input_ids_lengths"].tolist())]}


def sentences(path):
    """Lists of (word, label) of a file of columns; an empty line ends a sentence."""
    opened = gzip.open if path.endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8") as file:
        for part in file.read().split("\n\n"):
            lines = [line.split("\t") for line in part.splitlines() if line]
            if lines:
                yield [(line[0], line[-1]) for line in lines]


def prepare(vocabulary, output, *paths):
    tokenizer = BertTokenizerFast(vocabulary, do_lower_case=True)
    for path in paths:
        def samples():
            for sentence in sentences(path):
                encoded = tokenizer([word for word, _ in sentence], is_split_into_words=True, truncation=True, max_length=512)
                words = encoded.word_ids()
                begins = [word is not None and (i == 0 or words[i - 1] != word) for i, word in enumerate(words)]
                yield {"input_ids": torch.tensor(encoded["input_ids"], dtype=torch.int32),
                       "labels": torch.tensor([NAMES.index(sentence[word][1]) if begin else NO_LABEL
                                               for word, begin in zip(words, begins)], dtype=torch.int8)}
        name = pathlib.Path(path).name.split(".")[0]
        hetseq.write_shards(samples(), output, name=name, ragged=["input_ids", "labels"])


def entities(labels):
    """The (begin, end) of the names in a list of numbers of NAMES, as seqeval reads IOB2 by default: I begins a name where
    none goes on."""
    found, begin = set(), None
    for i, label in enumerate([*labels, 0]):
        if begin is not None and label != 2:
            found.add((begin, i))
            begin = None
        if label == 1 or (label == 2 and begin is None):
            begin = i
    return found


def score(data, predictions):
    """Prints precision, recall and F1 of whole names."""
    hits = named = present = 0
    with h5py.File(data) as true, h5py.File(predictions) as said:
        borders = true["labels_offsets"][:]
        for begin, end in zip(borders, borders[1:]):
            truth, guess = true["labels"][begin:end], said["labels"][begin:end]
            truth, guess = (entities(row[truth != NO_LABEL].tolist()) for row in (truth, guess))
            hits, named, present = hits + len(truth & guess), named + len(guess), present + len(truth)
    print(f"precision {hits / max(1, named):.4f}, recall {hits / present:.4f}, F1 {2 * hits / (named + present):.4f} "
          f"of {present} names")


if __name__ == "__main__":
    {"prepare": prepare, "score": score}[sys.argv[1]](*sys.argv[2:])
