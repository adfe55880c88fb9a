"""Any model of transformers from texts to texts (BART, T5, ...), from the config.json in a folder:

    mpirun -np 2 python -m hetseq train inputs/python/gallery/seq2seq.py:Seq2Seq --model-config FOLDER \
        --data 'pairs/train*.h5' --batch-tokens 16384 --max-tokens 4096 --save-dir runs/seq2seq
"""
import torch
from torch.nn import functional as F
from transformers import AutoConfig, AutoModelForSeq2SeqLM

import hetseq


class Seq2Seq(hetseq.Task):
    fields = {"input_ids": hetseq.Ragged(torch.int64, minimum=0), "labels": hetseq.Ragged(torch.int64, minimum=0)}
    losses, tokens, weights = ["nll"], "labels", hetseq.tokens("labels")
    defaults = {"optimizer": "adamw", "lr": 3e-4, "clip-norm": 1}

    def model(self, config):
        return AutoModelForSeq2SeqLM.from_config(AutoConfig.from_pretrained(config.model_config))

    def mask(self, batch, name):
        return torch.arange(batch[name].shape[1], device=batch[name].device) < batch[name + "_lengths"][:, None]

    def inputs(self, batch):
        return {"input_ids": batch["input_ids"], "attention_mask": self.mask(batch, "input_ids").long()}

    def forward(self, model, batch):
        targets = batch["labels"].masked_fill(~self.mask(batch, "labels"), -100)
        logits = model(**self.inputs(batch), labels=targets).logits
        return {"nll": F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum", ignore_index=-100)}
