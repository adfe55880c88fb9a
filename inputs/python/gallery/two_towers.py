"""Images and texts that find each other (CLIP, Radford et al. 2021), by a model of transformers, among those of a group.

    mpirun -np 2 python -m hetseq train inputs/python/gallery/two_towers.py:TwoTowers --data 'pairs/train*.h5' \
        --valid-data 'pairs/valid*.h5' --norm-group 64 --save-dir runs/two-towers
"""
import torch
from torch.nn import functional as F
from transformers import CLIPConfig, CLIPModel

import hetseq


class TwoTowers(hetseq.Task):
    fields = {"images": hetseq.Field(torch.uint8, (3, 32, 32)), "input_ids": hetseq.Field(torch.int64, (16,), minimum=0)}
    losses, metrics, groups = ["contrast"], ["accuracy"], True
    options = {"width": hetseq.Option(128, "of the hidden states"), "vocab-size": hetseq.Option(8000, "ids of the vocabulary")}
    defaults = {"optimizer": "adamw", "lr": 5e-4, "batch-size": 256, "max-sentences": 128}

    def model(self, config):
        width, dropout = config.width, 0.1 if config.dropout is None else config.dropout
        tower = {"hidden_size": width, "intermediate_size": 2 * width, "num_hidden_layers": 3, "num_attention_heads": 4,
                 "attention_dropout": dropout}
        return CLIPModel(CLIPConfig(
            text_config={**tower, "vocab_size": config.vocab_size, "max_position_embeddings": 16, "bos_token_id": 1,
                         "eos_token_id": 2},
            vision_config={**tower, "image_size": 32, "patch_size": 8}, projection_dim=width))

    def forward(self, model, batch):
        pixels = batch["images"].to(model.logit_scale.dtype) / 127.5 - 1
        made, scale = model(input_ids=batch["input_ids"], pixel_values=pixels), model.logit_scale.exp()
        sums = {"contrast": 0, "accuracy": 0}
        for part in hetseq.groups(batch):
            scores = scale * made.image_embeds[part] @ made.text_embeds[part].T
            truth = torch.arange(len(scores), device=scores.device)
            for way in (scores, scores.T):
                sums["contrast"] = sums["contrast"] + F.cross_entropy(way, truth, reduction="sum") / 2
            sums["accuracy"] = sums["accuracy"] + (scores.argmax(1) == truth).sum()
        return sums if not model.training else {"contrast": sums["contrast"]}
