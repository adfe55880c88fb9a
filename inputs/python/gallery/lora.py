"""Low-rank adapters (LoRA, Hu et al. 2021) by peft on a model of transformers in a local folder, which stays as it is:

    mpirun -np 2 python -m hetseq train inputs/python/gallery/lora.py:Lora --model-config FOLDER \
        --data 'data/gpt2/train*.h5' --save-dir runs/lora

Then `hetseq.load("runs/lora").save_pretrained("adapters")` writes what `PeftModel.from_pretrained` reads.
"""
import torch
from peft import LoraConfig, get_peft_model
from torch.nn import functional as F
from transformers import AutoModelForCausalLM

import hetseq


class Lora(hetseq.Task):
    fields = {"input_ids": hetseq.Field(torch.int64, shape=(None,), minimum=0, meaning="ids of the vocabulary")}
    losses = ["nll"]
    options = {"rank": hetseq.Option(8, "of the adapters")}
    defaults = {"optimizer": "adamw", "lr": 1e-3, "max-sentences": 16}

    def model(self, config):
        return get_peft_model(AutoModelForCausalLM.from_pretrained(config.model_config), LoraConfig(
            r=config.rank, target_modules="all-linear", lora_dropout=0.1 if config.dropout is None else config.dropout,
            task_type="CAUSAL_LM"))

    def weights(self, batch):
        return batch["input_ids"][:, 1:].numel()

    def forward(self, model, batch):
        ids = batch["input_ids"]
        logits = model(input_ids=ids).logits[:, :-1]
        return {"nll": F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), reduction="sum")}
