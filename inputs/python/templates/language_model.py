"""A language model on texts of unequal length, random numbers until you put your own data and model in their places.

    mpirun -np 2 hetseq train my_task.py --valid-data valid --save-dir run
    hetseq evaluate run --data test
    hetseq predict run --data test --output predictions.h5

The first line again goes on where the run stopped, on as many ranks as you like. Other options: hetseq train --help.
In Python, hetseq.load("run") gives the trained module.
"""
import torch
from torch import nn
from torch.nn import functional as F

import hetseq

VOCABULARY, LONGEST = 64, 48  # ids, and of them in a text
UNKNOWN, IGNORED = 0, -100


class Texts(torch.utils.data.Dataset):
    """Put your dataset in its place: anything with len(dataset) and dataset[i]."""

    def __init__(self, count, seed):
        self.count, self.seed = count, seed

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        if i >= self.count:
            raise IndexError(i)
        generator = torch.Generator().manual_seed(self.seed + i)  # a sample is always the same
        length, first, step = (int(torch.randint(low, high, (), generator=generator))
                               for low, high in ((4, LONGEST + 1), (1, VOCABULARY), (1, 4)))
        return {"ids": [1 + (first + place * step) % (VOCABULARY - 1) for place in range(length)]}  # it counts by `step`


class Decoder(nn.Module):
    """A small Transformer that sees the ids before each."""

    def __init__(self, width, layers, dropout):
        super().__init__()
        self.words, self.places = nn.Embedding(VOCABULARY, width), nn.Embedding(LONGEST, width)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout, "gelu", batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.output = nn.Linear(width, VOCABULARY)

    def forward(self, ids):  # (n, t) to (n, t, VOCABULARY)
        places = torch.arange(ids.shape[1], device=ids.device)
        later = places[None, :] > places[:, None]  # true: not seen. Padding is behind each text, so it is hidden too.
        return self.output(self.layers(self.words(ids) + self.places(places), mask=later))


class MyTask(hetseq.Task):
    # Ragged: of unequal length. A batch has the texts padded under "ids", and their lengths under "ids_lengths".
    fields = {"ids": hetseq.Ragged(torch.int64, minimum=0, maximum=VOCABULARY - 1, meaning="ids of the vocabulary")}
    losses, metrics, tokens = ["nll"], ["accuracy"], "ids"
    # Options of your own: --width 64 on the command line, config.width in `model`.
    options = {"width": hetseq.Option(32, "of the hidden states"), "layers": hetseq.Option(2, "of the Transformer")}
    # Other values than hetseq's own for its options; the command line wins. Batches are counted in tokens.
    defaults = {"optimizer": "adamw", "lr": 3e-3, "clip-norm": 1, "batch-tokens": 2048, "max-tokens": 4096, "max-epoch": 5,
                "log-interval": 10}

    def model(self, config):
        return Decoder(config.width, config.layers, 0.1 if config.dropout is None else config.dropout)

    def dataset(self, config, split):
        """`split` is what --data names (train by default), --valid-data, or --data of evaluate and predict. Since lengths
        must be known before the first batch, hetseq writes the texts once to its cache."""
        seeds = {"train": 0, "valid": 1_000_000, "test": 2_000_000}
        if split not in seeds:
            raise hetseq.TaskError(f"no data are named '{split}': use one of {', '.join(seeds)}")
        return Texts(2048 if split == "train" else 256, seeds[split])

    def transform(self, sample, training):
        """One sample's tensors, made in processes beside training. Draw as you like with torch, NumPy or random: what is
        drawn depends on the seed, the epoch and the sample alone."""
        ids = sample["ids"]
        if training:  # some ids are hidden
            ids = ids.masked_fill(torch.rand(len(ids)) < 0.05, UNKNOWN)
        return {**sample, "ids": ids}

    def targets(self, batch):
        """The next id of each, (n, t - 1); IGNORED behind the text, and where it is hidden."""
        ids, places = batch["ids"], torch.arange(batch["ids"].shape[1], device=batch["ids"].device)
        is_known = (places < batch["ids_lengths"][:, None]) & (ids != UNKNOWN)
        return ids.masked_fill(~is_known, IGNORED)[:, 1:]

    def weights(self, batch):
        """What the summed loss is divided by, over the whole batch: the targets that count."""
        return (self.targets(batch) != IGNORED).sum()

    def forward(self, model, batch):
        """Sums over this part of a batch, never means: hetseq divides by the whole batch's weight."""
        scores, targets = model(batch["ids"])[:, :-1].flatten(0, 1), self.targets(batch).flatten()
        sums = {"nll": F.cross_entropy(scores, targets, reduction="sum", ignore_index=IGNORED)}
        if not model.training:
            sums["accuracy"] = (scores.argmax(-1) == targets).sum()
        return sums

    def predict(self, model, batch):
        """What `hetseq predict` writes: a row for each sample, under these names. Here the logarithm of a text's
        probability, given its first id."""
        scores, targets = model(batch["ids"])[:, :-1].transpose(1, 2), self.targets(batch)
        return {"log_probability": -F.cross_entropy(scores, targets, reduction="none", ignore_index=IGNORED).sum(1)}
