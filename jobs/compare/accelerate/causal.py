"""inputs/python/gallery/causal.py with accelerate: accelerate launch causal.py MODEL_FOLDER SAVE_DIR"""
import os
import sys

import h5py
import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader
from transformers import AutoConfig, AutoModelForCausalLM

TOKENS, EPOCHS, PARTS = 16384, 10, 2


def batches(path, tokens):
    """Texts of like lengths, about so many tokens together, none of few: padded ids and the lengths."""
    with h5py.File(path) as file:
        borders = torch.from_numpy(file["input_ids_offsets"][:])
        ids = torch.from_numpy(file["input_ids"][:]).long().tensor_split(borders[1:-1])
    lengths = borders.diff()
    order = lengths.argsort()
    ends = lengths[order].cumsum(0)
    parts = order.split(((ends - 1) * (ends[-1] // tokens) // ends[-1]).bincount().tolist())
    return [(pad_sequence([ids[i] for i in part], batch_first=True), lengths[part]) for part in parts]


model_folder, folder = sys.argv[1:]
accelerator = Accelerator(gradient_accumulation_steps=PARTS)
set_seed(1, device_specific=True)
share = TOKENS // accelerator.num_processes
train = DataLoader(batches("texts/train-00000-of-00001.h5", share), shuffle=True, drop_last=True,
                   collate_fn=lambda batch: batch[0])
valid = DataLoader(batches("texts/valid-00000-of-00001.h5", share // PARTS), collate_fn=lambda batch: batch[0])
model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(model_folder))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0)
train, valid, model, optimizer = accelerator.prepare(train, valid, model, optimizer)


def sums_of(ids, lengths):
    mask = torch.arange(ids.shape[1], device=ids.device) < lengths[:, None]
    logits = model(input_ids=ids, attention_mask=mask.long()).logits[:, :-1].flatten(0, 1)
    targets = ids.masked_fill(~mask, -100)[:, 1:].flatten()
    nll = F.cross_entropy(logits, targets, reduction="sum", ignore_index=-100)
    return nll, (logits.argmax(1) == targets).sum(), lengths.sum()


first_epoch = 0
if os.path.exists(f"{folder}/epoch"):
    accelerator.load_state(folder)
    with open(f"{folder}/epoch") as file:
        first_epoch = int(file.read())
for epoch in range(first_epoch, EPOCHS):
    model.train()
    for ids, lengths in train:
        tokens = accelerator.reduce(lengths.sum().float(), "mean")
        for part in zip(ids.chunk(PARTS), lengths.chunk(PARTS)):
            with accelerator.accumulate(model):
                accelerator.backward(PARTS * sums_of(*part)[0] / tokens)
        accelerator.clip_grad_norm_(model.parameters(), 1)
        optimizer.step()
        optimizer.zero_grad()
    model.eval()
    sums = torch.zeros(3)
    with torch.no_grad():
        for batch in valid:
            found = accelerator.gather_for_metrics(torch.stack(sums_of(*batch))[None])
            sums += found.sum(0).cpu()
    accelerator.print(epoch + 1, (sums[:2] / sums[2]).tolist())
    accelerator.save_state(folder)
    if accelerator.is_main_process:
        with open(f"{folder}/epoch", "w") as file:
            file.write(str(epoch + 1))
accelerator.end_training()
