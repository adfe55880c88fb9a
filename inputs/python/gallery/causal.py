"""Any causal language model of transformers (Llama, Qwen2, Mistral, ...) on texts of unequal length, from the config.json in
a folder:

    mpirun -np 2 python -m hetseq train inputs/python/gallery/causal.py:Causal --model-config FOLDER \
        --data 'texts/train*.h5' --batch-tokens 16384 --max-tokens 4096 --save-dir runs/causal
"""
import torch
from torch.nn import functional as F
from transformers import AutoConfig, AutoModelForCausalLM

import hetseq


class Causal(hetseq.Task):
    fields = {"input_ids": hetseq.Ragged(torch.int64, minimum=0, meaning="ids of the vocabulary")}
    losses, metrics = ["nll"], ["accuracy"]
    tokens, weights = "input_ids", hetseq.tokens("input_ids")
    options = {"attention": hetseq.Option("sdpa", "how it is computed", choices=["sdpa", "eager"])}
    defaults = {"optimizer": "adamw", "lr": 3e-4, "clip-norm": 1}

    def model(self, config):
        return AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(config.model_config),
                                                attn_implementation=config.attention)

    def forward(self, model, batch):
        ids, lengths = batch["input_ids"], batch["input_ids_lengths"]
        mask = torch.arange(ids.shape[1], device=ids.device) < lengths[:, None]
        logits = model(input_ids=ids, attention_mask=mask.long()).logits[:, :-1].flatten(0, 1)
        targets = ids.masked_fill(~mask, -100)[:, 1:].flatten()
        sums = {"nll": F.cross_entropy(logits, targets, reduction="sum", ignore_index=-100)}
        if not model.training:
            sums["accuracy"] = (logits.argmax(-1) == targets).sum()
        return sums
