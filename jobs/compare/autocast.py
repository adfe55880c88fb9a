#!/usr/bin/env python3
"""Losses of GPT-2 and Llama in 16 bits: hetseq's --precision beside torch.autocast and GradScaler in plain PyTorch.

python jobs/compare/autocast.py 'data/gpt2/train*.h5' [--device cuda] [--precisions bf16,fp16] [--updates 100] [--samples 64]

Both train the same network on the same samples, all of them in each update, without dropout, with AdamW and one seed.
"""
import argparse
import glob
import json
import pathlib
import sys
import tempfile

import h5py
import numpy
import torch
from torch.nn import functional as F
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

import hetseq

LENGTH = 64


class Texts(hetseq.Task):
    fields = {"ids": hetseq.Field(torch.int64, (LENGTH,))}
    losses = ["nll"]

    def weights(self, batch):
        return batch["ids"][:, 1:].numel()

    def forward(self, model, batch):
        logits = model(input_ids=batch["ids"]).logits[:, :-1].flatten(0, 1)
        return F.cross_entropy(logits, batch["ids"][:, 1:].flatten(), reduction="sum")


class Gpt2(Texts):
    def model(self, config):
        return GPT2LMHeadModel(GPT2Config(vocab_size=8000, n_positions=LENGTH, n_embd=256, n_layer=4, n_head=8, resid_pdrop=0,
                                          embd_pdrop=0, attn_pdrop=0, bos_token_id=0, eos_token_id=0))


class Llama(Texts):
    def model(self, config):
        return LlamaForCausalLM(LlamaConfig(vocab_size=8000, hidden_size=256, intermediate_size=688, num_hidden_layers=4,
                                            num_attention_heads=8, num_key_value_heads=4, max_position_embeddings=LENGTH))


def plain(task, ids, precision, device, updates):
    torch.manual_seed(1)
    model = task.model(None).to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0)
    scaler = torch.amp.GradScaler(device, enabled=precision == "fp16")
    types = {"bf16": torch.bfloat16, "fp16": torch.float16}
    batch, losses, skipped = {"ids": ids.to(device)}, [], 0
    while len(losses) < updates:
        with torch.autocast(device, types.get(precision), enabled=precision in types):
            loss = task.forward(model, batch) / task.weights(batch)
        optimizer.zero_grad()
        before = scaler.get_scale()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        if scaler.get_scale() < before:  # GradScaler leaves the update out; hetseq repeats it
            skipped += 1
            continue
        losses.append(loss.item())
    return losses, skipped


def own(task, data, precision, device, updates, folder):
    hetseq.train(task, data=str(data), save_dir=str(folder), precision=precision, device=device, batch_size=task.count,
                 max_sentences=task.count, max_update=updates, optimizer="adamw", lr=3e-4, weight_decay=0, clip_norm=0,
                 lr_scheduler="fixed", warmup_updates=0, log_interval=1, save_interval=0, cache_dir="none", seed=1)
    lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    return [line["loss"] for line in lines if line["kind"] == "train"], json.loads((folder / "summary.json").read_text())["overflows"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--precisions", default="fp32,bf16,fp16")
    parser.add_argument("--updates", type=int, default=100)
    parser.add_argument("--samples", type=int, default=64)
    options = parser.parse_args()
    with h5py.File(sorted(glob.glob(options.data))[0]) as file:
        ids = torch.from_numpy(file["input_ids"][:options.samples, :LENGTH].astype(numpy.int64))
    work = pathlib.Path(tempfile.mkdtemp())
    with h5py.File(work / "ids.h5", "w") as file:
        file["ids"] = ids.numpy()
    results = []
    for task in (Gpt2(), Llama()):
        task.count = len(ids)
        for precision in options.precisions.split(","):
            name = type(task).__name__
            reference, skipped = plain(task, ids, precision, options.device, options.updates)
            losses, repeated = own(task, work / "ids.h5", precision, options.device, options.updates, work / f"{name}-{precision}")
            gap = max(abs(a - b) / b for a, b in zip(losses, reference, strict=True))
            results.append(f"{name} {precision}: losses {losses[0]:.4f} to {losses[-1]:.4f}, PyTorch {reference[0]:.4f} to "
                           f"{reference[-1]:.4f}; largest difference {100 * gap:.3f} %; repeated {repeated}, skipped {skipped}")
    print("\n".join(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
