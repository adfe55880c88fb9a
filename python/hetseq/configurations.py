"""Configurations, such as the config.cfg of a run."""

from __future__ import annotations

import os
import pathlib
from typing import Union


def read_options(path: Union[str, os.PathLike[str]]) -> dict[str, str]:
    """The options that a configuration names, as texts."""
    options = {}
    for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
        name, is_option, value = line.partition("=")
        if is_option and not name.lstrip().startswith("#"):
            options[name.strip()] = value.split(" #")[0].strip()
    return options
