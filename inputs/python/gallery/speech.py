"""A wav2vec 2.0 (Baevski et al. 2020) of transformers that tells commands by their sound. Two of its defaults look at more
than a sample, or draw by NumPy: `feat_extract_norm="group"` over padded sounds, and `apply_spec_augment`.

    mpirun -np 2 python -m hetseq train inputs/python/gallery/speech.py:Speech --data 'commands/train*.h5' \
        --valid-data 'commands/valid*.h5' --save-dir runs/speech
"""
import torch
from torch.nn import functional as F
from transformers import Wav2Vec2Config, Wav2Vec2ForSequenceClassification

import hetseq


class Speech(hetseq.Task):
    fields = {"sound": hetseq.Field(torch.float32, (None,)), "label": hetseq.Field(torch.int64, minimum=0)}
    losses, metrics = ["nll"], ["accuracy"]
    options = {"width": hetseq.Option(128, "of the hidden states"), "labels": hetseq.Option(10, "that a sound may have")}
    defaults = {"optimizer": "adamw", "lr": 3e-4, "batch-size": 64, "max-sentences": 32}

    def model(self, config):
        width, dropout = config.width, 0.1 if config.dropout is None else config.dropout
        return Wav2Vec2ForSequenceClassification(Wav2Vec2Config(
            hidden_size=width, num_hidden_layers=4, num_attention_heads=4, intermediate_size=2 * width,
            conv_dim=(width // 2,) * 3, conv_kernel=(10, 3, 3), conv_stride=(5, 2, 2), num_conv_pos_embeddings=16,
            num_conv_pos_embedding_groups=4, hidden_dropout=dropout, attention_dropout=dropout, feat_proj_dropout=dropout,
            activation_dropout=dropout, final_dropout=dropout, layerdrop=0.1, feat_extract_norm="layer",
            do_stable_layer_norm=True, apply_spec_augment=False, num_labels=config.labels))

    def forward(self, model, batch):
        logits = model(batch["sound"].to(model.classifier.weight.dtype)).logits
        sums = {"nll": F.cross_entropy(logits, batch["label"], reduction="sum")}
        if not model.training:
            sums["accuracy"] = (logits.argmax(1) == batch["label"]).sum()
        return sums
