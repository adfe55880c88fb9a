"""Writes bert_variants.json: losses and gradients of transformers' BertForPreTraining in fp64, dropout off, for each
option of its architecture that hetseq takes, with the parameters of formula.py on the generated sequences of
bert_losses.json.

Needs torch, transformers, h5py. Run again only when the reference itself changes:
    python3 tests/reference/bert_variants.py
"""

import json
import pathlib

import torch
import transformers

import bert_losses
import formula

# Of 44, which occurs in the sequences, the embedding gets no gradient as the padding's.
VARIANTS = [{"hidden_act": "gelu_new"}, {"hidden_act": "gelu_pytorch_tanh"}, {"hidden_act": "relu"},
            {"hidden_act": "silu"}, {"layer_norm_eps": 1e-2}, {"type_vocab_size": 3}, {"num_attention_heads": 1},
            {"hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 8, "intermediate_size": 40,
             "max_position_embeddings": 20},
            {"pad_token_id": 44}, {"pad_token_id": None}, {"tie_word_embeddings": False}]
SHOWN = ["bert.embeddings.word_embeddings.weight", "bert.embeddings.token_type_embeddings.weight",
         "bert.encoder.layer.0.attention.self.query.weight", "bert.encoder.layer.1.intermediate.dense.weight",
         "bert.pooler.dense.weight", "cls.predictions.transform.dense.weight", "cls.predictions.bias",
         "cls.predictions.decoder.weight", "cls.predictions.decoder.bias"]


def main():
    rows = bert_losses.generated_rows()
    variants = []
    for options in VARIANTS:
        config = {**bert_losses.SMALLEST, **options}
        model = bert_losses.make_model(config)
        numbers = bert_losses.losses(model, rows)
        norms = formula.gradient_norms(model)
        numbers["gradient_norms"] = {name: norms[name] for name in SHOWN if name in norms}
        variants.append({"options": options, "config": config, **numbers})
    result = {"transformers": transformers.__version__, "torch": torch.__version__, "variants": variants}
    pathlib.Path(__file__).with_suffix(".json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
