"""A Mixtral (Jiang et al. 2024) of transformers, whose router's balance (Fedus et al. 2021) is a loss over groups of
samples. Data as those of ../gpt2.py:

    mpirun -np 2 python -m hetseq train inputs/python/gallery/experts.py:Experts --data 'data/gpt2/train*.h5' \
        --norm-group 8 --save-dir runs/experts
"""
import torch
from torch.nn import functional as F
from transformers import MixtralConfig, MixtralForCausalLM
from transformers.models.mixtral.modeling_mixtral import load_balancing_loss_func

import hetseq


class Experts(hetseq.Task):
    fields = {"input_ids": hetseq.Field(torch.int64, shape=(None,), minimum=0, meaning="ids of the vocabulary")}
    losses, groups = ["nll", "balance"], True
    options = {"width": hetseq.Option(128, "of the hidden states"), "layers": hetseq.Option(4, "of the network"),
               "vocab-size": hetseq.Option(8000, "ids of the vocabulary")}
    defaults = {"optimizer": "adamw", "lr": 1e-3, "clip-norm": 1, "max-sentences": 16}

    def model(self, config):
        return MixtralForCausalLM(MixtralConfig(
            vocab_size=config.vocab_size, hidden_size=config.width, intermediate_size=2 * config.width,
            num_hidden_layers=config.layers, num_attention_heads=4, num_key_value_heads=2, num_local_experts=4,
            num_experts_per_tok=2, attention_dropout=0.1 if config.dropout is None else config.dropout,
            max_position_embeddings=512, bos_token_id=0, eos_token_id=0))

    def weights(self, batch):
        return {"nll": batch["input_ids"][:, 1:].numel(), "balance": len(batch["input_ids"])}

    def forward(self, model, batch):
        ids = batch["input_ids"]
        made = model(input_ids=ids, output_router_logits=True)
        nll = F.cross_entropy(made.logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten(), reduction="sum")
        routers = [logits.view(*ids.shape, -1) for logits in made.router_logits]
        settings, balance = model.config, 0
        for part in hetseq.groups(batch):  # a mean over the group's tokens, times its samples
            of_group = tuple(logits[part].flatten(0, 1) for logits in routers)
            balance = balance + len(ids[part]) * load_balancing_loss_func(
                of_group, settings.num_local_experts, settings.num_experts_per_tok)
        return {"nll": nll, "balance": 0.02 * balance}
