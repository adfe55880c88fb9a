"""Models of samples of unequal length, dropout on: the result does not depend on how batches are cut and padded."""

import unittest

from harness import ROOT, Case, need

need("torch", "numpy", "h5py", "safetensors", "transformers")

import numpy as np

SAMPLES = 320  # five updates
VOCABULARY = 40

TASKS = f"""
    import sys
    import torch, hetseq
    from torch import nn
    from torch.nn import functional as F
    from transformers import (BartConfig, BertConfig, BertForTokenClassification, LlamaConfig, MixtralConfig, Qwen2Config,
                              T5Config, WhisperConfig)
    sys.path[:0] = [{str(ROOT / "inputs" / "python")!r}, {str(ROOT / "inputs" / "python" / "gallery")!r}]
    import bert_ner
    from causal import Causal
    from seq2seq import Seq2Seq
    from speech_to_text import SpeechToText

    SIZE = dict(vocab_size={VOCABULARY}, hidden_size=16, num_hidden_layers=2, num_attention_heads=4)
    GPT = dict(SIZE, intermediate_size=32, num_key_value_heads=2, attention_dropout=0.1, bos_token_id=1, eos_token_id=2)
    SEQ2SEQ = dict(vocab_size={VOCABULARY}, d_model=16, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                   decoder_attention_heads=4, encoder_ffn_dim=32, decoder_ffn_dim=32, dropout=0.1, attention_dropout=0.1,
                   activation_dropout=0.1, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=2)

    def mask_of(batch, name):
        lengths = batch[name + "_lengths"]
        return torch.arange(batch[name].shape[1], device=lengths.device) < lengths[:, None]

    def nll(logits, targets):
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum", ignore_index=-100)

    CONFIGS = {{
        "Llama": LlamaConfig(**GPT), "Qwen2": Qwen2Config(**GPT), "Mixtral": MixtralConfig(**GPT, num_local_experts=3),
        "Bart": BartConfig(**SEQ2SEQ, max_position_embeddings=32),
        "T5": T5Config(vocab_size={VOCABULARY}, d_model=16, d_kv=4, d_ff=32, num_layers=2, num_heads=4,
                       decoder_start_token_id=0),
        "Whisper": WhisperConfig(**SEQ2SEQ, num_mel_bins=8, max_source_positions=6, max_target_positions=32)}}
    Llama = Qwen2 = Mixtral = Causal
    Bart = T5 = Seq2Seq
    Whisper = SpeechToText

    class Ner(bert_ner.Ner):
        defaults = {{}}
        def model(self, config):
            return BertForTokenClassification(BertConfig(**SIZE, intermediate_size=32, num_labels=3))

    class Tagging(hetseq.Task):
        fields = {{"x": hetseq.Ragged(torch.int64)}}
        losses, weights = ["nll"], hetseq.tokens("x")
        def forward(self, model, batch):
            mask = mask_of(batch, "x")
            return nll(model(batch["x"], mask), (batch["x"] % 3).masked_fill(~mask, -100))

    class Encoder(Tagging):
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.embedding = nn.Embedding({VOCABULARY}, 16)
                layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.1, batch_first=True)
                self.encoder = nn.TransformerEncoder(layer, 2)
                self.attention = nn.MultiheadAttention(16, 4, dropout=0.1)
                self.output = nn.Linear(16, 3)
            def forward(self, x, mask):
                x = self.encoder(self.embedding(x), src_key_padding_mask=~mask).transpose(0, 1)
                x = x + self.attention(x, x, x, ~mask, need_weights=True)[0]
                return self.output(x.transpose(0, 1))
        def model(self, config):
            return self.Model()

    class TimeFirst(Tagging):
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.embedding, self.drop = nn.Embedding({VOCABULARY}, 16), nn.Dropout(0.1)
                self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 32, dropout=0.1), 2)
                self.output = nn.Linear(16, 3)
            def forward(self, x, mask):
                x = self.drop(self.embedding(x.T))
                return self.output(self.encoder(x, src_key_padding_mask=~mask)).transpose(0, 1)
        def model(self, config):
            return self.Model()

    class Convolution(Tagging):
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.embedding = nn.Embedding({VOCABULARY}, 16)
                self.convolutions = nn.ModuleList(nn.Conv1d(16, 16, 3, padding=1) for _ in range(2))
                self.dropout = nn.Dropout(0.1)
                self.output = nn.Linear(16, 3)
            def forward(self, x, mask):
                x = self.embedding(x).transpose(1, 2)
                for convolution in self.convolutions:
                    x = x + self.dropout(torch.relu(convolution(x * mask[:, None])))
                return self.output(x.transpose(1, 2))
        def model(self, config):
            return self.Model()
"""
# The fields of each task's samples.
TEXT, PAIR, SPEECH, NAMED, PLAIN = ("ids",), ("ids", "others"), ("audio", "others"), ("ids", "names"), ("x",)
DATA = {"Llama": TEXT, "Qwen2": TEXT, "Mixtral": TEXT, "Bart": PAIR, "T5": PAIR, "Whisper": SPEECH, "Ner": NAMED,
        "Encoder": PLAIN, "TimeFirst": PLAIN, "Convolution": PLAIN}
OPTIONS = {name: {"model_config": name} for name in ("Llama", "Qwen2", "Mixtral", "Bart", "T5", "Whisper")}
OPTIONS["Qwen2"]["attention"] = "eager"
DATASETS = {"ids": "input_ids", "others": "labels", "names": "labels"}  # as the tasks call them


class RaggedTest(Case):
    def setUp(self):
        super().setUp()
        from hetseq import write_shards
        draw = np.random.default_rng(2)

        def sample():
            # Few are long, so that batches of 7 and of 64 are padded unlike.
            lengths = np.minimum(2 + draw.geometric(0.3, 2), 20)
            x, y = (draw.integers(3, VOCABULARY, length) for length in lengths)
            return {"x": x, "ids": x.astype(np.int32), "others": y, "names": (x % 3).astype(np.int8),
                    "audio": draw.normal(size=(8, 12)).astype(np.float32)}

        samples = [sample() for _ in range(SAMPLES)]
        for fields in set(DATA.values()):
            names = {field: DATASETS.get(field, field) for field in fields}
            write_shards(({name: s[field] for field, name in names.items()} for s in samples), self.folder,
                         name="-".join(fields), ragged=[name for name in names.values() if name != "audio"])
        self.write("tasks.py", TASKS)

    def train(self, ranks, tasks, suffix, **options):
        self.run_ranks(ranks, self.write("script.py", f"""
            import hetseq, tasks
            for name, config in tasks.CONFIGS.items():
                if {ranks} == 1:  # several would write at once
                    config.save_pretrained(name)
            for name, fields in {tasks!r}.items():
                task = getattr(tasks, name)()
                # It takes long, and finds where samples lie.
                task.self_test, task.defaults = {ranks} == 1 or name == "TimeFirst", {{}}
                hetseq.train(task, data="-".join(fields) + "-0*.h5", batch_size=64, balance="declared",
                             optimizer="sgd", lr=0.1, max_update=5, save_dir=name + {suffix!r}, **{options!r},
                             **{OPTIONS!r}.get(name, {{}}))
        """), seconds=1100)

    def test_one_rank_and_ranks_of_7_57_and_0_samples_agree(self):
        self.train(1, DATA, "-1", max_sentences=64)
        self.train(3, DATA, "-3", max_sentences={"0": 7, "1": 57, "2": 0})
        for task in DATA:
            with self.subTest(task):
                self.assert_near(task, 1e-6)


if __name__ == "__main__":
    unittest.main(verbosity=2)
