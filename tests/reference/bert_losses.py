"""Writes bert_losses.json: losses and gradients of transformers' BertForPreTraining in fp64, dropout off, with the
parameters of formula.py, on generated sequences (stored beside the numbers) and on the first ROWS sequences of NVIDIA
shards.

Needs torch, transformers, h5py. Run again only when the reference itself changes:
    python3 tests/reference/bert_losses.py ../shared/data/bert/*.hdf5
"""

import json
import pathlib
import sys

import h5py
import numpy as np
import torch
import transformers

import formula

ROWS = 64
CHUNK = 8
TINY = dict(vocab_size=30522, hidden_size=128, num_hidden_layers=2, num_attention_heads=2, intermediate_size=512)
SMALLEST = dict(vocab_size=97, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
                max_position_embeddings=24)
FIELDS = ["input_ids", "input_mask", "segment_ids", "masked_lm_positions", "masked_lm_ids", "next_sentence_labels"]


def make_model(config):
    config = transformers.BertConfig(**config, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
                                     attn_implementation="eager")
    model = transformers.BertForPreTraining(config).double()
    formula.fill(model)
    return model


def generated_rows():
    """Six sequences of up to 20 tokens, with padding, without any masked token in one, position 0 masked in another."""
    generator = np.random.default_rng(1)
    n, length, predictions = 6, 20, 4
    lengths = [20, 13, 20, 7, 16, 20]
    rows = {
        "input_ids": generator.integers(1, SMALLEST["vocab_size"], (n, length)),
        "input_mask": np.array([[int(t < size) for t in range(length)] for size in lengths]),
        "segment_ids": np.array([[int(size // 2 <= t < size) for t in range(length)] for size in lengths]),
        "masked_lm_positions": np.zeros((n, predictions), dtype=np.int64),
        "masked_lm_ids": np.zeros((n, predictions), dtype=np.int64),
        "next_sentence_labels": generator.integers(0, 2, n),
    }
    rows["input_ids"] *= rows["input_mask"]
    for i, count in enumerate([4, 1, 3, 0, 2, 4]):
        positions = np.sort(generator.choice(np.arange(0 if i == 2 else 1, lengths[i]), count, replace=False))
        if i == 2:
            positions[0] = 0
        rows["masked_lm_positions"][i, :count] = positions
        rows["masked_lm_ids"][i, :count] = generator.integers(1, SMALLEST["vocab_size"], count)
    return rows


def losses(model, rows):
    """Means over masked tokens and over sequences; gradients of their sum are left in the model. A few sequences at a
    time, since the logits of all would fill the memory."""
    tensors = {name: torch.from_numpy(np.asarray(value, dtype=np.int64)) for name, value in rows.items()}
    masked_tokens = int((tensors["masked_lm_ids"] != 0).sum())
    sequences = len(tensors["next_sentence_labels"])
    total = {"masked_tokens": masked_tokens, "mlm": 0.0, "nsp": 0.0}
    model.zero_grad()
    for begin in range(0, sequences, CHUNK):
        mlm, nsp = summed_losses(model, {name: value[begin:begin + CHUNK] for name, value in tensors.items()})
        mlm, nsp = mlm / masked_tokens, nsp / sequences
        (mlm + nsp).backward()
        total["mlm"] += mlm.item()
        total["nsp"] += nsp.item()
    return total


def summed_losses(model, tensors):
    labels = torch.full_like(tensors["input_ids"], -100)
    sample, entry = tensors["masked_lm_ids"].nonzero(as_tuple=True)
    labels[sample, tensors["masked_lm_positions"][sample, entry]] = tensors["masked_lm_ids"][sample, entry]
    output = model(input_ids=tensors["input_ids"], attention_mask=tensors["input_mask"],
                   token_type_ids=tensors["segment_ids"])
    cross_entropy = torch.nn.functional.cross_entropy
    return (cross_entropy(output.prediction_logits.flatten(0, 1), labels.flatten(), ignore_index=-100,
                          reduction="sum"),
            cross_entropy(output.seq_relationship_logits, tensors["next_sentence_labels"], reduction="sum"))


def main(shards):
    result = {"transformers": transformers.__version__, "torch": torch.__version__,
              "generated": {"config": SMALLEST}, "shards": {"config": TINY, "rows": ROWS, "files": {}}}
    model = make_model(SMALLEST)
    rows = generated_rows()
    result["generated"]["rows"] = {name: value.tolist() for name, value in rows.items()}
    result["generated"].update(losses(model, rows))
    result["generated"]["gradient_norms"] = formula.gradient_norms(model)
    model = make_model(TINY)
    for shard in shards:
        with h5py.File(shard) as file:
            rows = {name: file[name][:ROWS] for name in FIELDS}
        numbers = losses(model, rows)
        norms = formula.gradient_norms(model)
        numbers["gradient_norms"] = {name: norms[name] for name in (
            "bert.embeddings.word_embeddings.weight", "bert.embeddings.position_embeddings.weight",
            "bert.encoder.layer.0.attention.self.query.weight", "bert.encoder.layer.1.output.dense.weight",
            "bert.pooler.dense.weight", "cls.predictions.bias")}
        result["shards"]["files"][pathlib.Path(shard).name] = numbers
    path = pathlib.Path(__file__).with_suffix(".json")
    path.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
