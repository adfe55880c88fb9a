"""GPT-2 of transformers, pretrained on lines of text: see prepare_gpt2.py.

mpirun -np 2 python -m hetseq train inputs/python/gpt2.py:Gpt2 --data 'data/gpt2/train*.h5' --save-dir runs/gpt2
"""
import torch
from torch.nn import functional as F
from transformers import GPT2Config, GPT2LMHeadModel

import hetseq


class Gpt2(hetseq.Task):
    fields = {"input_ids": hetseq.Field(torch.int64, shape=(None,), minimum=0, meaning="ids of the vocabulary")}
    losses, metrics = ["nll"], ["accuracy"]
    options = {"width": hetseq.Option(128, "of the hidden states"), "layers": hetseq.Option(4, "of the network"),
               "vocab-size": hetseq.Option(8000, "ids of the vocabulary"),
               "positions": hetseq.Option(128, "tokens that the network can look at")}
    defaults = {"optimizer": "adamw", "lr": 1e-3, "lr-scheduler": "inverse_sqrt", "warmup-updates": 100, "clip-norm": 1,
                "max-sentences": 16}
    recompute = ["transformer.h.*"]  # where memory lacks

    def model(self, config):
        dropout = 0.1 if config.dropout is None else config.dropout
        return GPT2LMHeadModel(GPT2Config(
            vocab_size=config.vocab_size, n_positions=config.positions, n_embd=config.width, n_layer=config.layers,
            n_head=max(1, config.width // 32), resid_pdrop=dropout, embd_pdrop=dropout, attn_pdrop=dropout,
            bos_token_id=0, eos_token_id=0))

    def weights(self, batch):
        return batch["input_ids"][:, 1:].numel()

    def forward(self, model, batch):
        ids = batch["input_ids"]
        logits, targets = model(input_ids=ids).logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten()
        sums = {"nll": F.cross_entropy(logits, targets, reduction="sum")}
        if not model.training:
            sums["accuracy"] = (logits.argmax(-1) == targets).sum()
        return sums
