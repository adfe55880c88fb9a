"""A graph network (Kipf & Welling 2017) on graphs of unequal size: the logarithm of a random graph's triangles.

    python graphs.py DIR
    mpirun -np 2 python -m hetseq train graphs.py:Triangles --data 'DIR/train-*.h5' --valid-data 'DIR/valid-*.h5'
"""
import sys

import numpy as np
import torch
from torch import nn

import hetseq


class GraphNetwork(nn.Module):
    def __init__(self, width, layers, dropout):
        super().__init__()
        self.kinds = nn.Embedding(8, width)
        self.own, self.near = (nn.ModuleList(nn.Linear(width, width) for _ in range(layers)) for _ in range(2))
        self.dropout, self.output = nn.Dropout(dropout), nn.Linear(width, 1)

    def forward(self, kinds, owner, sources, targets, graphs):
        x = self.kinds(kinds)
        share = 1 / torch.bincount(targets, minlength=len(x)).clamp(min=1)[targets, None]  # of a neighbour
        for own, near in zip(self.own, self.near):
            messages = torch.zeros_like(x).index_add(0, targets, x[sources] * share)
            with hetseq.rows(owner):  # a row is a node, not a sample
                x = x + self.dropout(torch.relu(own(x) + near(messages)))
        return self.output(x.new_zeros(graphs, x.shape[1]).index_add(0, owner, x))[:, 0]


class Triangles(hetseq.Task):
    fields = {"kinds": hetseq.Ragged(torch.int64, maximum=7), "sources": hetseq.Ragged(torch.int64),
              "targets": hetseq.Ragged(torch.int64, same_lengths_as="sources"), "triangles": hetseq.Field(torch.float32)}
    losses, tokens = ["squares"], "kinds"
    defaults = {"optimizer": "adamw", "lr": 1e-3, "batch-tokens": 1024, "max-tokens": 2048, "max-epoch": 10}

    def model(self, config):
        return GraphNetwork(32, 3, 0.1 if config.dropout is None else config.dropout)

    def forward(self, model, batch):
        nodes = batch["kinds_lengths"]
        is_node, is_edge = (torch.arange(batch[name].shape[1], device=nodes.device) < batch[name + "_lengths"][:, None]
                            for name in ("kinds", "sources"))
        ends = ((batch[name] + (nodes.cumsum(0) - nodes)[:, None])[is_edge] for name in ("sources", "targets"))
        guess = model(batch["kinds"][is_node], torch.repeat_interleave(nodes), *ends, len(nodes))
        return {"squares": (guess - batch["triangles"]).square().sum()}


def graph(draw):
    near = np.triu(draw.random((count := draw.integers(3, 20), count)) < 0.3, 1)
    sources, targets = (near := near | near.T).nonzero()
    triangles = np.float32(np.log1p(np.trace(np.linalg.matrix_power(near.astype(float), 3)) / 6))
    return {"kinds": np.minimum(near.sum(0), 7), "sources": sources, "targets": targets, "triangles": triangles}


if __name__ == "__main__":
    for name, count in (("train", 4000), ("valid", 500)):
        graphs = (graph(np.random.default_rng((count, i))) for i in range(count))
        hetseq.write_shards(graphs, sys.argv[1], name=name, ragged=["kinds", "sources", "targets"])
