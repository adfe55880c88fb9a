"""Writes pretrained_bert/: a small random BertForPreTraining as transformers' save_pretrained leaves it, and losses.json
with its losses (means, fp64) on the generated sequences of bert_losses.json, cut to its sizes.

Needs torch, transformers. Run again only when the reference itself changes: python3 tests/reference/pretrained_bert.py
"""

import json
import pathlib

import torch
import transformers

import bert_losses

CONFIG = dict(vocab_size=97, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=12,
              max_position_embeddings=24, initializer_range=0.5)

torch.manual_seed(1)
folder = pathlib.Path(__file__).with_suffix("")
model = transformers.BertForPreTraining(transformers.BertConfig(**CONFIG))
with torch.no_grad():
    for parameter in model.parameters():
        parameter.add_(torch.randn_like(parameter) * 0.1)  # biases and normalisations too
model.save_pretrained(folder)
model = transformers.BertForPreTraining.from_pretrained(folder, attn_implementation="eager").double().eval()
losses = bert_losses.losses(model, bert_losses.generated_rows())
(folder / "losses.json").write_text(json.dumps(losses, indent=1) + "\n")
