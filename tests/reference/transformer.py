"""Writes transformer.json: loss, nll, accuracy and gradients of a small Transformer written here with plain PyTorch
operators after Vaswani et al. 2017, in fp64, dropout off, with the parameters of formula.py under fairseq's names, on
generated pairs (stored beside the numbers).

Needs torch. Run again only when the reference itself changes:
    python3 tests/reference/transformer.py
"""

import json
import math
import pathlib

import torch

import formula

VOCABULARY, WIDTH, INNER, HEADS, LAYERS, MOST = 53, 16, 24, 4, 2, 12
SMOOTHING = 0.1
PAIRS = [([5, 9, 11, 40, 2], [7, 8, 2]), ([6, 2], [30, 31, 32, 33, 34, 35, 2]), ([2], [2]),
         ([12, 13, 14, 15, 16, 17, 18, 19, 2], [52, 3, 2]), ([8, 8, 8, 2], [9, 9, 9, 9, 2])]
CASES = {
    "post-norm": dict(shared="all", positions="sinusoidal", pre_norm=False, activation="relu"),
    "pre-norm": dict(shared="decoder", positions="learned", pre_norm=True, activation="gelu"),
    "separate": dict(shared="none", positions="sinusoidal", pre_norm=True, activation="relu"),
}


class Parameters:
    """Tensors of the formula by name, made when they are first asked for."""

    def __init__(self):
        self.tensors = {}

    def get(self, name, *shape):
        if name not in self.tensors:
            values = torch.from_numpy(formula.uniform(name, shape)) * 0.1
            if "layer_norm.weight" in name:
                values = values + 1
            self.tensors[name] = values.requires_grad_()
        return self.tensors[name]


class Reference:
    def __init__(self, shared, positions, pre_norm, activation):
        self.p = Parameters()
        self.shared, self.positions, self.pre_norm, self.activation = shared, positions, pre_norm, activation

    def linear(self, x, name, outputs):
        return x @ self.p.get(name + ".weight", outputs, x.shape[-1]).T + self.p.get(name + ".bias", outputs)

    def norm(self, x, name):
        mean = x.mean(-1, keepdim=True)
        variance = ((x - mean) ** 2).mean(-1, keepdim=True)
        return (x - mean) / torch.sqrt(variance + 1e-5) * self.p.get(name + ".weight", WIDTH) + self.p.get(
            name + ".bias", WIDTH)

    def around(self, x, name, part):
        if self.pre_norm:
            return x + part(self.norm(x, name))
        return self.norm(x + part(x), name)

    def attention(self, name, queries, keys, seen):
        """One sentence: queries (T, H), keys (S, H), seen (T, S)."""
        split = lambda y: y.reshape(len(y), HEADS, WIDTH // HEADS).transpose(0, 1)
        q, k, v = (split(self.linear(y, f"{name}.{w}_proj", WIDTH)) for w, y in
                   (("q", queries), ("k", keys), ("v", keys)))
        scores = q @ k.transpose(1, 2) / math.sqrt(WIDTH // HEADS)
        weights = torch.softmax(scores.masked_fill(~seen, -math.inf), -1)
        return self.linear((weights @ v).transpose(0, 1).reshape(len(queries), WIDTH), f"{name}.out_proj", WIDTH)

    def feed_forward(self, x, prefix):
        inner = self.linear(x, prefix + "fc1", INNER)
        inner = torch.relu(inner) if self.activation == "relu" else 0.5 * inner * (1 + torch.erf(inner / math.sqrt(2)))
        return self.linear(inner, prefix + "fc2", WIDTH)

    def table(self, side):
        name = "encoder" if side == "encoder" or self.shared == "all" else "decoder"
        return self.p.get(f"{name}.embed_tokens.weight", VOCABULARY, WIDTH)

    def output_table(self):
        if self.shared == "none":
            return self.p.get("decoder.output_projection.weight", VOCABULARY, WIDTH)
        return self.table("decoder")

    def embed(self, ids, side):
        if self.positions == "learned":
            places = self.p.get(f"{side}.embed_positions.weight", MOST, WIDTH)[:len(ids)]
        else:
            angles = torch.tensor([[t / 10000 ** (i // 2 * 2 / WIDTH) for i in range(WIDTH)] for t in range(len(ids))],
                                  dtype=torch.float64)
            even = torch.arange(WIDTH) % 2 == 0
            # The product keeps them in fp32.
            places = torch.where(even, torch.sin(angles), torch.cos(angles)).float().double()
        return self.table(side)[torch.tensor(ids)] * math.sqrt(WIDTH) + places

    def logits(self, source, target):
        x = self.embed(source, "encoder")
        everything = torch.ones(len(source), len(source), dtype=torch.bool)
        for i in range(LAYERS):
            name = f"encoder.layers.{i}."
            x = self.around(x, name + "self_attn_layer_norm",
                            lambda y: self.attention(name + "self_attn", y, y, everything))
            x = self.around(x, name + "final_layer_norm", lambda y: self.feed_forward(y, name))
        memory = self.norm(x, "encoder.layer_norm") if self.pre_norm else x
        x = self.embed([1] + target[:-1], "decoder")
        earlier = torch.ones(len(target), len(target)).tril().bool()
        for i in range(LAYERS):
            name = f"decoder.layers.{i}."
            x = self.around(x, name + "self_attn_layer_norm",
                            lambda y: self.attention(name + "self_attn", y, y, earlier))
            x = self.around(x, name + "encoder_attn_layer_norm", lambda y: self.attention(
                name + "encoder_attn", y, memory, torch.ones(len(target), len(source), dtype=torch.bool)))
            x = self.around(x, name + "final_layer_norm", lambda y: self.feed_forward(y, name))
        if self.pre_norm:
            x = self.norm(x, "decoder.layer_norm")
        return x @ self.output_table().T


def along(name, gradient):
    """The product with a direction of the formula: a gradient of the right length may point elsewhere."""
    return float((gradient * torch.from_numpy(formula.uniform("along " + name, tuple(gradient.shape)))).sum())


def result(**case):
    reference = Reference(**case)
    loss = nll = 0
    correct = tokens = 0
    for source, target in PAIRS:
        log_p = torch.log_softmax(reference.logits(source, target), -1)
        labels = torch.tensor(target)
        of_labels = -log_p[torch.arange(len(target)), labels].sum()
        loss = loss + (1 - SMOOTHING) * of_labels - SMOOTHING * log_p.mean(-1).sum()
        nll = nll + of_labels
        correct += int((log_p.argmax(-1) == labels).sum())
        tokens += len(target)
    loss.backward()
    return {"config": case, "loss": loss.item(), "nll": nll.item(), "correct": correct, "tokens": tokens,
            "gradients": {name: [t.grad.norm().item(), along(name, t.grad)]
                          for name, t in sorted(reference.p.tensors.items())}}


def main():
    torch.set_default_dtype(torch.float64)
    root = {"sizes": dict(vocabulary=VOCABULARY, width=WIDTH, inner=INNER, heads=HEADS, layers=LAYERS, most=MOST,
                          smoothing=SMOOTHING),
            "pairs": PAIRS, "cases": {name: result(**case) for name, case in CASES.items()}}
    pathlib.Path(__file__).with_name("transformer.json").write_text(json.dumps(root, indent=None) + "\n")


if __name__ == "__main__":
    main()
