"""Shards for gpt2.py: text files to rows of 128 ids of a byte-level BPE that is trained on them.

python inputs/python/prepare_gpt2.py OUTPUT TEXT...       every twentieth row is for validation
"""
import sys

import numpy as np
from tokenizers import ByteLevelBPETokenizer

import hetseq

VOCABULARY, LENGTH = 8000, 128


def main(output, *texts):
    tokenizer = ByteLevelBPETokenizer()
    tokenizer.train(list(texts), vocab_size=VOCABULARY, special_tokens=["<|endoftext|>"], show_progress=False)
    lines = (line for text in texts for line in open(text, encoding="utf-8"))
    ids = [id for line in tokenizer.encode_batch(list(lines)) for id in line.ids]
    rows = np.array(ids[:len(ids) // LENGTH * LENGTH], dtype=np.int32).reshape(-1, LENGTH)
    is_valid = np.arange(len(rows)) % 20 == 0
    hetseq.write_shards({"input_ids": rows[~is_valid]}, output, name="train")
    hetseq.write_shards({"input_ids": rows[is_valid]}, output, name="valid")
    tokenizer.save_model(output)
    print(f"{(~is_valid).sum()} rows for training, {is_valid.sum()} for validation, in {output}")


if __name__ == "__main__":
    main(*sys.argv[1:])
