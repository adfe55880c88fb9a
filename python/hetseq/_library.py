"""Finds and loads the trainer's shared library."""

import os

import torch

torch.ops.load_library(os.environ["HETSEQ_PYTHON_LIBRARY"])


def version() -> str:
    """hetseq's version."""
    return torch.ops.hetseq.version()
