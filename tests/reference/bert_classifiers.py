"""Writes bert_classifiers.json: losses, accuracies and gradients of transformers' BertForTokenClassification and
BertForSequenceClassification in fp64, dropout off, with the parameters of formula.py, on the generated sequences of
bert_losses.json.

Needs torch, transformers, h5py. Run again only when the reference itself changes:
    python3 tests/reference/bert_classifiers.py
"""

import json
import pathlib

import numpy as np
import torch
import transformers

import bert_losses
import formula

LABELS = 5
WEIGHTS = [0.5, 1.0, 2.0, 1.5, 3.0]  # of classes
IGNORED = -100


def make_model(kind, labels=LABELS, **options):
    config = transformers.BertConfig(**bert_losses.SMALLEST, num_labels=labels, hidden_dropout_prob=0.0,
                                     attention_probs_dropout_prob=0.0, attn_implementation="eager", **options)
    model = kind(config).double()
    formula.fill(model)
    return model


def inputs(rows):
    names = {"input_ids": "input_ids", "attention_mask": "input_mask", "token_type_ids": "segment_ids"}
    return {name: torch.from_numpy(np.asarray(rows[row], dtype=np.int64)) for name, row in names.items()}


def numbers(model, batch, labels):
    """What transformers says, the weighted sum of losses, and the gradients of the mean."""
    output = model(**batch, labels=labels)
    output.loss.backward()
    logits, flat = output.logits.detach().flatten(0, -2), labels.flatten()
    is_labelled = flat != IGNORED
    weighted = torch.nn.functional.cross_entropy(logits, flat, torch.tensor(WEIGHTS, dtype=torch.float64),
                                                 ignore_index=IGNORED, reduction="sum")
    right = logits[is_labelled].argmax(1) == flat[is_labelled]
    return {"labels": labels.tolist(), "loss": output.loss.item(), "weighted_sum": weighted.item(),
            "accuracy": right.double().mean().item(), "gradient_norms": formula.gradient_norms(model)}


def main():
    rows = bert_losses.generated_rows()
    batch = inputs(rows)
    generator = np.random.default_rng(2)
    shape = tuple(batch["input_ids"].shape)
    is_first = (generator.random(shape) < 0.6) & (rows["input_mask"] == 1)
    token_labels = torch.from_numpy(np.where(is_first, generator.integers(0, LABELS, shape), IGNORED))
    sequence_labels = torch.from_numpy(generator.integers(0, LABELS, shape[0]))
    values = torch.from_numpy(generator.random(shape[0]))
    regression = make_model(transformers.BertForSequenceClassification, 1, problem_type="regression")
    output = regression(**batch, labels=values)
    output.loss.backward()
    result = {"transformers": transformers.__version__, "torch": torch.__version__, "config": bert_losses.SMALLEST,
              "class_weights": WEIGHTS,
              "token": numbers(make_model(transformers.BertForTokenClassification), batch, token_labels),
              "sequence": numbers(make_model(transformers.BertForSequenceClassification), batch, sequence_labels),
              "regression": {"labels": values.tolist(), "loss": output.loss.item(),
                             "gradient_norms": formula.gradient_norms(regression)}}
    pathlib.Path(__file__).with_suffix(".json").write_text(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
