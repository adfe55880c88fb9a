#!/usr/bin/env python3
"""hetseq translate beside CTranslate2: the same weights, beam and batches, one thread each, in turns.

ctranslate2_decoding.py RUN INPUT [--hetseq PROGRAM] [--beam 5] [--batch 64] [--max-length 200] [--rounds 3]

RUN is a folder with config.json, model.safetensors and the two vocabularies (SentencePiece models), INPUT text to
translate. CTranslate2 gets its batches encoded, sorted by length as hetseq sorts them; only its translate_batch is
timed. Of hetseq all is timed but starting, so encoding, decoding and writing too. CPU times do not hear of other
programs on the machine. Needs ctranslate2, numpy, safetensors and sentencepiece.
"""
import argparse
import json
import os
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time

os.environ["OMP_NUM_THREADS"] = "1"

# pylint: disable=wrong-import-position
import ctranslate2
import numpy as np
import safetensors.numpy
import sentencepiece


def sinusoids(positions, width):
    """As hetseq's: sines at even elements, cosines at odd ones."""
    angles = np.arange(positions)[:, None] / 10000 ** (np.arange(0, width, 2) / width)
    table = np.zeros((positions, width), np.float32)
    table[:, 0::2], table[:, 1::2] = np.sin(angles), np.cos(angles)
    return table


class Converter:
    """fairseq's names, which hetseq's files have, to CTranslate2's."""

    def __init__(self, folder):
        self.config = json.loads((folder / "config.json").read_text())
        self.tensors = safetensors.numpy.load_file(folder / "model.safetensors")

    def tensor(self, name, *others):
        for one in (name, *others):
            if one in self.tensors:
                return self.tensors[one].astype(np.float32)
        raise SystemExit(f"the model lacks {name}")

    def linear(self, spec, *prefixes):
        spec.weight = np.concatenate([self.tensor(prefix + ".weight") for prefix in prefixes])
        spec.bias = np.concatenate([self.tensor(prefix + ".bias") for prefix in prefixes])

    def norm(self, spec, prefix):
        spec.gamma, spec.beta = self.tensor(prefix + ".weight"), self.tensor(prefix + ".bias")

    def self_attention(self, spec, prefix):
        names = [f"{prefix}self_attn.{part}_proj" for part in "qkv"]
        self.linear(spec.linear[0], *names)
        self.linear(spec.linear[1], prefix + "self_attn.out_proj")
        self.norm(spec.layer_norm, prefix + "self_attn_layer_norm")

    def cross_attention(self, spec, prefix):
        self.linear(spec.linear[0], prefix + "encoder_attn.q_proj")
        self.linear(spec.linear[1], prefix + "encoder_attn.k_proj", prefix + "encoder_attn.v_proj")
        self.linear(spec.linear[2], prefix + "encoder_attn.out_proj")
        self.norm(spec.layer_norm, prefix + "encoder_attn_layer_norm")

    def feed_forward(self, spec, prefix):
        self.linear(spec.linear_0, prefix + "fc1")
        self.linear(spec.linear_1, prefix + "fc2")
        self.norm(spec.layer_norm, prefix + "final_layer_norm")

    def side(self, spec, side):
        for i, layer in enumerate(spec.layer):
            prefix = f"{side}.layers.{i}."
            self.self_attention(layer.self_attention, prefix)
            if side == "decoder":
                self.cross_attention(layer.attention, prefix)
            self.feed_forward(layer.ffn, prefix)
        if self.config["positions"] == "learned":
            spec.position_encodings.encodings = self.tensor(side + ".embed_positions.weight")
        else:
            spec.position_encodings.encodings = sinusoids(self.config["max_positions"], self.config["d_model"])
        spec.scale_embeddings = True
        if self.config["pre_norm"]:
            self.norm(spec.layer_norm, side + ".layer_norm")

    def convert(self, output):
        config = self.config
        activation = {"relu": ctranslate2.specs.Activation.RELU, "gelu": ctranslate2.specs.Activation.GELU}
        spec = ctranslate2.specs.TransformerSpec.from_config(
            (config["encoder_layers"], config["decoder_layers"]), config["attention_heads"],
            pre_norm=config["pre_norm"], activation=activation[config["activation_function"]])
        source, target = "encoder.embed_tokens.weight", "decoder.embed_tokens.weight"
        spec.encoder.embeddings[0].weight = self.tensor(source)
        spec.decoder.embeddings.weight = self.tensor(target, source)
        spec.decoder.projection.weight = self.tensor("decoder.output_projection.weight", target, source)
        self.side(spec.encoder, "encoder")
        self.side(spec.decoder, "decoder")
        spec.register_source_vocabulary(token_names(config["source_vocab_size"]))
        spec.register_target_vocabulary(token_names(config["target_vocab_size"]))
        spec.config.decoder_start_token = "<s>"
        spec.validate()
        output.mkdir()
        spec.save(str(output))


def token_names(count):
    """Ids as CTranslate2's tokens; the first three are hetseq's symbols."""
    return ["<unk>", "<s>", "</s>"] + [str(i) for i in range(3, count)]


def batches_of(sources, most):
    """hetseq's: windows of 32 batches, longest sentences first, 4,096 tokens at most."""
    for first in range(0, len(sources), 32 * most):
        window = range(first, min(first + 32 * most, len(sources)))
        batch, tokens = [], 0
        for i in sorted(window, key=lambda i: -len(sources[i])):
            if batch and (len(batch) == most or tokens + len(sources[i]) > 4096):
                yield batch
                batch, tokens = [], 0
            batch.append(i)
            tokens += len(sources[i])
        if batch:
            yield batch


class Theirs:
    def __init__(self, folder, model, lines, options):
        encoder = sentencepiece.SentencePieceProcessor(model_file=str(folder / "source.vocabulary"))
        self.decoder = sentencepiece.SentencePieceProcessor(model_file=str(folder / "target.vocabulary"))
        names = token_names(encoder.vocab_size())
        self.sources = [[names[i] for i in encoder.encode(line)] + ["</s>"] for line in lines]
        self.translator = ctranslate2.Translator(
            str(model), device="cpu", compute_type="float32", inter_threads=1, intra_threads=1)
        self.options = options

    def run(self):
        texts, tokens, wall, cpu = [""] * len(self.sources), 0, 0.0, 0.0
        filled = [i for i, source in enumerate(self.sources) if len(source) > 1]
        for batch in batches_of([self.sources[i] for i in filled], self.options.batch):
            indices = [filled[i] for i in batch]
            wall_before, cpu_before = time.perf_counter(), time.process_time()
            results = self.translator.translate_batch(
                [self.sources[i] for i in indices], beam_size=self.options.beam,
                max_decoding_length=self.options.max_length, return_scores=True)
            wall += time.perf_counter() - wall_before
            cpu += time.process_time() - cpu_before
            for i, result in zip(indices, results):
                ids = [int(token) for token in result.hypotheses[0] if token.isdigit()]
                texts[i] = self.decoder.decode(ids)
                tokens += len(result.hypotheses[0]) + 1
        return texts, tokens, wall, cpu


class Ours:
    def __init__(self, folder, text, options):
        self.command = [options.hetseq, "translate", str(folder), "--threads", "1", "--beam", str(options.beam),
                        "--batch-sentences", str(options.batch), "--max-len-b", str(options.max_length)]
        self.text = text
        self.start_cpu = statistics.median(self.call(b"")[2] for _ in range(3))

    def call(self, text):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(self.command, input=text, capture_output=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode != 0:
            sys.exit(done.stderr.decode())
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return done.stdout.decode(), done.stderr.decode(), cpu

    def run(self):
        out, log, cpu = self.call(self.text)
        found = re.search(r"([\d,]+) tokens?, in ([\d.,]+) s", log)
        numbers = [float(number.replace(",", "")) for number in found.groups()]
        return out.splitlines(), int(numbers[0]), numbers[1], cpu - self.start_cpu


def spread(values):
    return f"{statistics.median(values):,.0f} ({min(values):,.0f} to {max(values):,.0f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=pathlib.Path)
    parser.add_argument("input", type=pathlib.Path)
    parser.add_argument("--hetseq", default="build/cpu/bin/hetseq")
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--max-length", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    text = options.input.read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        model = pathlib.Path(folder) / "model"
        Converter(options.run).convert(model)
        theirs = Theirs(options.run, model, text.decode().splitlines(), options)
        ours = Ours(options.run, text, options)
        rates = {"hetseq": [], "CTranslate2": []}
        for _ in range(options.rounds):
            texts = {}
            for name, program in (("hetseq", ours), ("CTranslate2", theirs)):
                texts[name], tokens, wall, cpu = program.run()
                rates[name].append((tokens / wall, tokens / cpu))
        equal = sum(a == b for a, b in zip(texts["hetseq"], texts["CTranslate2"]))
    print(f"{equal} of {len(texts['hetseq'])} translations are equal")
    for name, values in rates.items():
        print(f"{name}: {spread([v[0] for v in values])} tokens/s, {spread([v[1] for v in values])} tokens a CPU second")
    for i, what in enumerate(("", " of CPU time")):
        ratios = [a[i] / b[i] for a, b in zip(*rates.values())]
        print(f"hetseq / CTranslate2{what}: {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    main()
