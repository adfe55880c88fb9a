"""Small models of transformers as tasks whose blocks are a chain (huggingface_pipelines.sh), dropout on. As a program:

    huggingface_tasks.py data FOLDER             writes words-*.h5, rows of unequal length, and images-*.h5
    huggingface_tasks.py difference A B          compares two runs' models
"""
import pathlib
import sys

import torch
import transformers as tf
from torch.nn import functional as F

import hetseq

BLOCKS, WIDTH, VOCABULARY, LONGEST = 4, 32, 60, 24
PAD, MASK = 0, 1
SIZES = dict(vocab_size=VOCABULARY, hidden_size=WIDTH, num_hidden_layers=BLOCKS, num_attention_heads=4, intermediate_size=64)
ENCODER = dict(SIZES, max_position_embeddings=LONGEST + 4, pad_token_id=PAD)
DECODER = dict(SIZES, num_key_value_heads=2, attention_dropout=0.1, pad_token_id=PAD)


class Causal(hetseq.Task):
    """Predicts the next word."""

    fields = {"words": hetseq.Ragged(torch.int64)}
    losses, tokens, weights = ["nll"], "words", hetseq.tokens("words")
    tied = True

    def mask(self, batch):
        return torch.arange(batch["words"].shape[1], device=batch["words"].device) < batch["words_lengths"][:, None]

    def forward(self, model, batch):
        words, mask = batch["words"], self.mask(batch)
        logits = model(input_ids=words, attention_mask=mask.long()).logits[:, :-1].flatten(0, 1)
        targets = words.masked_fill(~mask, -100)[:, 1:].flatten()
        return F.cross_entropy(logits, targets, reduction="sum", ignore_index=-100)


class Masked(Causal):
    """Predicts words that are masked where the forward draws it."""

    def forward(self, model, batch):
        words, mask = batch["words"], self.mask(batch)
        hidden = mask & (torch.rand(words.shape, device=words.device) < 0.3)
        logits = model(input_ids=words.masked_fill(hidden, MASK), attention_mask=mask.long()).logits.flatten(0, 1)
        return F.cross_entropy(logits, words.masked_fill(~hidden, -100).flatten(), reduction="sum", ignore_index=-100)


class Gpt2(Causal):
    chain = "transformer.h"

    def model(self, config):
        return tf.GPT2LMHeadModel(tf.GPT2Config(vocab_size=VOCABULARY, n_positions=LONGEST, n_embd=WIDTH, n_layer=BLOCKS,
                                                n_head=4, tie_word_embeddings=self.tied))


class Llama(Causal):
    chain = "model.layers"

    def model(self, config):
        return tf.LlamaForCausalLM(tf.LlamaConfig(**DECODER, tie_word_embeddings=self.tied))


class Qwen2(Causal):
    chain = "model.layers"

    def model(self, config):
        return tf.Qwen2ForCausalLM(tf.Qwen2Config(**DECODER, tie_word_embeddings=self.tied))


class Bert(Masked):
    chain = "bert.encoder.layer"

    def model(self, config):
        return tf.BertForMaskedLM(tf.BertConfig(**ENCODER, tie_word_embeddings=self.tied))


class Roberta(Masked):
    chain = "roberta.encoder.layer"

    def model(self, config):
        return tf.RobertaForMaskedLM(tf.RobertaConfig(**ENCODER, tie_word_embeddings=self.tied))


class Gpt2Untied(Gpt2):
    tied = False


class LlamaUntied(Llama):
    tied = False


class Qwen2Untied(Qwen2):
    tied = False


class BertUntied(Bert):
    tied = False


class RobertaUntied(Roberta):
    tied = False


class ViT(hetseq.Task):
    fields = {"image": hetseq.Field(torch.float32, (3, 16, 16)), "label": hetseq.Field(torch.int64)}
    losses = ["nll"]
    chain = "vit.layers"

    def model(self, config):
        return tf.ViTForImageClassification(tf.ViTConfig(
            image_size=16, patch_size=4, hidden_size=WIDTH, num_hidden_layers=BLOCKS, num_attention_heads=4,
            intermediate_size=64, num_labels=5, hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1))

    def forward(self, model, batch):
        return F.cross_entropy(model(pixel_values=batch["image"]).logits, batch["label"], reduction="sum")


def write_data(folder):
    draw = torch.Generator().manual_seed(5)

    def row():
        length = int(torch.randint(2, LONGEST + 1, (), generator=draw))
        return {"words": torch.randint(MASK + 1, VOCABULARY, (length,), generator=draw).numpy()}

    def picture():
        return {"image": torch.randn(3, 16, 16, generator=draw).numpy(),
                "label": int(torch.randint(0, 5, (), generator=draw))}

    hetseq.write_shards((row() for _ in range(160)), folder, name="words", ragged=["words"])
    hetseq.write_shards((picture() for _ in range(160)), folder, name="images")


def print_difference(one, other):
    """The largest of all parameters, and whether the files have the same bytes."""
    from hetseq.models import read_tensors

    first, second = (pathlib.Path(run, "model.safetensors") for run in (one, other))
    a, b = read_tensors(first), read_tensors(second)
    if a.keys() != b.keys():
        sys.exit(f"{first} and {second} have other parameters")
    largest = max((a[name].double() - b[name].double()).abs().max().item() for name in a)
    moved = first.read_bytes() != second.read_bytes()
    print(f"{largest:.1e}" if moved else "same bytes")
    if not largest <= 1e-5:
        sys.exit(f"{first} and {second} differ by {largest:.1e}, where 1e-5 is allowed")


if __name__ == "__main__":
    {"data": write_data, "difference": print_difference}[sys.argv[1]](*sys.argv[2:])
