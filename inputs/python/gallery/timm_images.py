"""A network for images of timm, by its name, on Fashion-MNIST, which jobs/quickstart.sh prepares. Batch normalisation
looks at groups of images:

    mpirun -np 2 python -m hetseq train inputs/python/gallery/timm_images.py:Images --network efficientnet_b0 \
        --data 'data/fashion-mnist/train*.h5' --valid-data 'data/fashion-mnist/t10k*.h5' --save-dir runs/efficientnet
"""
import timm
import torch
from torch.nn import functional as F

import hetseq


class Images(hetseq.Task):
    fields = {"images": hetseq.Field(torch.uint8, (28, 28)), "labels": hetseq.Field(torch.int64, minimum=0, maximum=9)}
    losses, metrics = ["nll"], ["accuracy"]
    options = {"network": hetseq.Option("efficientnet_b0", "a name of timm.list_models()"),
               "drop-path": hetseq.Option(0.2, "share of residual branches that are left out")}
    defaults = {"optimizer": "adamw", "lr": 1e-3, "lr-scheduler": "cosine", "batch-size": 256, "max-sentences": 64,
                "max-epoch": 10}

    def model(self, config):
        dropout = 0.2 if config.dropout is None else config.dropout
        return timm.create_model(config.network, in_chans=1, num_classes=10, drop_rate=dropout, drop_path_rate=config.drop_path)

    def forward(self, model, batch):
        dtype = next(model.parameters()).dtype
        logits = model(F.pad(batch["images"].to(dtype)[:, None] / 255 - 0.5, (2, 2, 2, 2)))
        sums = {"nll": F.cross_entropy(logits, batch["labels"], reduction="sum")}
        if not model.training:
            sums["accuracy"] = (logits.argmax(1) == batch["labels"]).sum()
        return sums
