"""inputs/python/gallery/lstm_tagger.py with accelerate: accelerate launch lstm_tagger.py SAVE_DIR"""
import os
import sys

import h5py
import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../../inputs/python/gallery"))
from lstm_tagger import NO_LABEL, Lstm  # noqa: E402

TOKENS, EPOCHS, VOCABULARY, LABELS = 2048, 5, 30522, 3


def batches(path, tokens):
    """Sentences of like lengths, about so many tokens together: padded ids, padded labels and the lengths."""
    with h5py.File(path) as file:
        borders = torch.from_numpy(file["input_ids_offsets"][:])
        ids, labels = (torch.from_numpy(file[name][:]).long().tensor_split(borders[1:-1]) for name in ("input_ids", "labels"))
    lengths = borders.diff()
    order = lengths.argsort()
    parts = order.split((lengths[order].cumsum(0) // tokens).bincount().tolist())
    return [(pad_sequence([ids[i] for i in part], True), pad_sequence([labels[i] for i in part], True, NO_LABEL),
             lengths[part]) for part in parts]


folder = sys.argv[1]
accelerator = Accelerator()
set_seed(1, device_specific=True)
data, valid_data = (batches(f"data/ner/{split}-00000-of-00001.h5", TOKENS // accelerator.num_processes)
                    for split in ("train", "devel"))
train = DataLoader(data, shuffle=True, drop_last=True, collate_fn=lambda batch: batch[0])
valid = DataLoader(valid_data, collate_fn=lambda batch: batch[0])
model = Lstm(VOCABULARY, 128, 2, LABELS, 0.3)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0)
train, valid, model, optimizer = accelerator.prepare(train, valid, model, optimizer)


def sums_of(ids, labels, lengths):
    scores, labels = model(ids, lengths).flatten(0, 1), labels.flatten()
    nll = F.cross_entropy(scores, labels, reduction="sum", ignore_index=NO_LABEL)
    return nll, (scores.argmax(1) == labels).sum(), (labels != NO_LABEL).sum()


first_epoch = 0
if os.path.exists(f"{folder}/epoch"):
    accelerator.load_state(folder)
    with open(f"{folder}/epoch") as file:
        first_epoch = int(file.read())
for epoch in range(first_epoch, EPOCHS):
    model.train()
    for batch in train:
        nll, _, words = sums_of(*batch)
        accelerator.backward(nll / accelerator.reduce(words.float(), "mean"))
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
