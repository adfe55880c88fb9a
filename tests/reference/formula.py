"""Numbers that Python and C++ (tests/model/formula.hpp) make alike: element i of the array `name` is
SplitMix64 (Steele et al. 2014) at position i of the stream that the name's FNV-1a hash starts."""

import numpy as np

MASK = (1 << 64) - 1


def _hash(name):
    value = 0xCBF29CE484222325
    for letter in name.encode():
        value = ((value ^ letter) * 0x100000001B3) & MASK
    return value


def uniform(name, shape):
    """fp64 in [-1, 1)."""
    count = int(np.prod(shape, dtype=np.int64))
    with np.errstate(over="ignore"):
        z = np.uint64(_hash(name)) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return ((z >> np.uint64(11)).astype(np.float64) * 2.0**-52 - 1).reshape(shape)


def parameter(name, shape, scale=0.1):
    """Scaled, and around 1 for the weight of a layer normalisation."""
    return uniform(name, shape) * scale + (1.0 if name.endswith("LayerNorm.weight") else 0.0)


def fill(model):
    """Sets the parameters of a torch model; they are fp64 or fp32 values of the formula."""
    import torch

    with torch.no_grad():
        for name, tensor in model.named_parameters():
            tensor.copy_(torch.from_numpy(parameter(name, tuple(tensor.shape))))


def gradient_norms(model):
    return {name: float(p.grad.double().norm()) for name, p in model.named_parameters() if p.grad is not None}
