#!/usr/bin/env python3
"""The loss of the best guess without context, on the masked positions of BERT shards: the baseline of a pretraining.

python jobs/compare/unigram.py 'data/novels/train*.h5' 'data/novels/valid*.h5'

Each piece has the share that it has among the first shards' predictions; each count is one more than was counted, so
that every piece has some. Prints the mean negative log-likelihood, in nats, of the second shards' predictions.
"""
import argparse
import glob

import h5py
import numpy


def predictions(pattern):
    """The ids that the files' masked positions hide."""
    paths = sorted(glob.glob(pattern))
    if not paths:
        raise SystemExit(f"no file matches {pattern}")
    parts = []
    for path in paths:
        with h5py.File(path) as file:
            if "masked_lm_ids" not in file:
                raise SystemExit(f"{path} holds no masked_lm_ids: prepare it with --static-masks on")
            ids = file["masked_lm_ids"][:]
            parts.append(ids[ids != 0])
    return numpy.concatenate(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("train", help="HDF5 files (a glob)")
    parser.add_argument("valid", help="HDF5 files (a glob)")
    options = parser.parse_args()
    train, valid = predictions(options.train), predictions(options.valid)
    counts = numpy.bincount(train, minlength=valid.max() + 1) + 1.0
    loss = -numpy.log(counts[valid] / counts.sum()).mean()
    print(f"unigram loss {loss:.4f} on {len(valid)} predictions, by {len(train)}")


if __name__ == "__main__":
    main()
