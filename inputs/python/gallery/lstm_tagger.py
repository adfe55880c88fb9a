"""A bidirectional LSTM that tags words' pieces, for the shards of inputs/python/bert_ner.py:

    python inputs/python/bert_ner.py prepare VOCAB.txt data/ner train.tsv.gz devel.tsv.gz test.tsv.gz
    mpirun -np 2 python -m hetseq train inputs/python/gallery/lstm_tagger.py:Tagger --data 'data/ner/train-*.h5' \
        --valid-data 'data/ner/devel-*.h5' --save-dir runs/tagger
"""
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import hetseq

NO_LABEL = -100


class Lstm(nn.Module):
    """Packed sequences keep the backward direction from beginning in the padding. They take no dropout between layers of
    one nn.LSTM, so each layer is one."""

    def __init__(self, vocabulary, width, layers, labels, dropout):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(
            nn.LSTM(width, width // 2, batch_first=True, bidirectional=True) for _ in range(layers))
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(width, labels)

    def forward(self, ids, lengths):
        x = self.dropout(self.embedding(ids))
        for layer in self.layers:
            packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
            x = self.dropout(pad_packed_sequence(layer(packed)[0], batch_first=True, total_length=ids.shape[1])[0])
        return self.output(x)


class Tagger(hetseq.Task):
    fields = {"input_ids": hetseq.Ragged(torch.int32, minimum=0, meaning="ids of the vocabulary"),
              "labels": hetseq.Ragged(torch.int8, padding=NO_LABEL, same_lengths_as="input_ids", is_target=True)}
    losses, metrics, tokens = ["nll"], ["accuracy"], "input_ids"
    options = {"vocabulary": hetseq.Option(30522, "number of ids"), "labels": hetseq.Option(3, "number of labels")}
    defaults = {"optimizer": "adamw", "lr": 1e-3, "batch-tokens": 2048, "max-tokens": 4096, "max-epoch": 5, "log-interval": 50}

    def model(self, config):
        return Lstm(config.vocabulary, 128, 2, config.labels, 0.3 if config.dropout is None else config.dropout)

    def weights(self, batch):
        return (batch["labels"] != NO_LABEL).sum()

    def forward(self, model, batch):
        scores = model(batch["input_ids"].long(), batch["input_ids_lengths"]).flatten(0, 1)
        labels = batch["labels"].long().flatten()
        sums = {"nll": F.cross_entropy(scores, labels, reduction="sum", ignore_index=NO_LABEL)}
        if not model.training:
            sums["accuracy"] = (scores.argmax(1) == labels).sum()
        return sums
