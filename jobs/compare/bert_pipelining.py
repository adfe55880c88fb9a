#!/usr/bin/env python3
"""Time of an update of BERT pretraining as a pipeline: torch.distributed.pipelining's Schedule1F1B over gloo.

mpirun -np 4 python jobs/compare/bert_pipelining.py data/bert-8192/train*.h5 --config data/bert-8192/model.json
  --cut 3+2+2+3 [--order 0+1+2+3] --batch 64 --micro-batch 4 [--tuned]

The blocks are those of transformers' BertForPreTraining, with SDPA; AdamW is fused. The units of --cut are hetseq's:
embeddings, layers, heads; --order has the ranks of the stages. The vocabulary head sees the predicted positions alone, the
same number in each row. Gradients are not clipped. --tuned keeps freed memory.
"""
import json
import os
import resource
import statistics
import time

import torch
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.nn import functional
from transformers import BertConfig, BertForPreTraining

import ddp


class Embeddings(nn.Module):
    def __init__(self, embeddings):
        super().__init__()
        self.embeddings = embeddings

    def forward(self, ids, inputs):
        return self.embeddings(input_ids=ids, token_type_ids=inputs["segments"])


class Layer(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, hidden, inputs):
        output = self.layer(hidden, inputs["mask"])
        return output if torch.is_tensor(output) else output[0]


class Heads(nn.Module):
    """Of words at the predicted positions, and of the order of sentences."""

    def __init__(self, pooler, heads):
        super().__init__()
        self.pooler, self.heads = pooler, heads

    def forward(self, hidden, inputs):
        places = inputs["places"].unsqueeze(-1).expand(-1, -1, hidden.shape[-1])
        return self.heads.predictions(hidden.gather(1, places)), self.heads.seq_relationship(self.pooler(hidden))


class Units(nn.Module):
    """Those of one stage."""

    def __init__(self, units):
        super().__init__()
        self.units = nn.ModuleList(units)

    def forward(self, hidden, mask, segments, places):
        for unit in self.units:
            hidden = unit(hidden, {"mask": mask, "segments": segments, "places": places})
        return hidden


def loss_of(outputs, targets):
    """`targets`: ids of the predicted words (0: none), then whether the second sentence is a random one."""
    words, order = outputs
    return (functional.cross_entropy(words.flatten(0, 1), targets[:, :-1].flatten(), ignore_index=0) +
            functional.cross_entropy(order, targets[:, -1]))


def stage_units(config, cut, stage):
    model = BertForPreTraining(config).train()
    units = [Embeddings(model.bert.embeddings), *map(Layer, model.bert.encoder.layer), Heads(model.bert.pooler, model.cls)]
    begin = sum(cut[:stage])
    return Units(units[begin:begin + cut[stage]])


def columns_of(data):
    ids = data["input_ids"].long()
    return {
        "ids": ids,
        "mask": data["input_mask"].bool()[:, None, None, :].expand(-1, 1, ids.shape[1], -1),
        "segments": data["segment_ids"].long(),
        "places": data["masked_lm_positions"].long(),
        "targets": torch.cat([data["masked_lm_ids"].long(), data["next_sentence_labels"].long().reshape(-1, 1)], 1),
    }


def trained(columns, module, stage, stages, options, micro_batch):
    """ms of each update."""
    rank = torch.distributed.get_rank()
    schedule = Schedule1F1B(PipelineStage(module, stage, stages, torch.device("cpu")), options.batch // micro_batch, loss_of)
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-4, weight_decay=0.01, fused=True)
    order, times = torch.randperm(len(columns["ids"]), generator=torch.Generator().manual_seed(1)), []
    for update in range(options.updates):
        chosen = order[update * options.batch:(update + 1) * options.batch]
        own = {name: column[chosen] for name, column in columns.items()}
        ids, targets = own.pop("ids"), own.pop("targets")
        torch.distributed.barrier()
        begin = time.perf_counter()
        optimizer.zero_grad()
        schedule.step(*([ids] if rank == 0 else []), **own, **({"target": targets} if rank == stages - 1 else {}))
        optimizer.step()
        torch.distributed.barrier()
        times.append(1000 * (time.perf_counter() - begin))
    return times


def main():
    file, micro_batch = ddp.taken("--config", ""), ddp.taken("--micro-batch", 4)
    cut = [int(part) for part in ddp.taken("--cut", "3+2+2+3").split("+")]
    order = [int(part) for part in ddp.taken("--order", "+".join(map(str, range(len(cut))))).split("+")]
    options = ddp.arguments(__doc__, batch=64)
    own = int(os.environ["OMPI_COMM_WORLD_RANK"])
    if own not in order:
        return
    os.environ.update(OMPI_COMM_WORLD_RANK=str(order.index(own)), OMPI_COMM_WORLD_SIZE=str(len(order)))
    stage = ddp.start_ranks()
    columns = columns_of(ddp.read_all(options.data))
    with open(file) as text:
        config = BertConfig(**json.load(text), attn_implementation="sdpa")
    times = trained(columns, stage_units(config, cut, stage), stage, len(cut), options, micro_batch)
    peaks = [None] * len(cut)
    torch.distributed.all_gather_object(peaks, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    if stage == 0:
        print(json.dumps({"ms": statistics.median(times[1:]), "cut": cut, "order": order, "peaks": peaks}), flush=True)
    torch.distributed.barrier()
    os._exit(0)  # torch 2.11's own ending aborts at times: "terminate called without an active exception"


if __name__ == "__main__":
    main()
