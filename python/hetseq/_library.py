"""The shared library below the package: where it is, and what torch it was built for. Importing this loads it."""
from __future__ import annotations

import json
import os
import pathlib
import sys

NAME = "libhetseq_python.so"
_PACKAGE = pathlib.Path(__file__).resolve().parent
_REBUILD = "build hetseq for this one (pip install ./python in its sources)"


def find_library() -> pathlib.Path:
    """The library: the one that HETSEQ_PYTHON_LIBRARY names, else the installed package's own, else one that was built
    in the checkout of this package (build/cuda, build/cpu). Raises ImportError where there is none."""
    named = os.environ.get("HETSEQ_PYTHON_LIBRARY")
    if named:
        places = [pathlib.Path(named)]
    else:
        builds = _PACKAGE.parents[1] / "build"
        places = [_PACKAGE / "lib" / NAME, *(builds / preset / "lib" / NAME for preset in _presets())]
    for place in places:
        if place.is_file():
            return place
    if named:
        raise ImportError(f"HETSEQ_PYTHON_LIBRARY names {named}, which is no file: correct it, or unset it")
    raise ImportError(f"hetseq's library {NAME} is not in {', '.join(str(place.parent) for place in places)}: "
                      "build it (cmake --preset cpu && ninja -C build/cpu hetseq_python), "
                      "or name it in HETSEQ_PYTHON_LIBRARY")


def _presets() -> tuple[str, ...]:
    import torch

    return ("cuda", "cpu") if torch.cuda.is_available() else ("cpu", "cuda")


def import_torch():
    """The module torch. Raises ImportError with what to do where this Python has none."""
    try:
        import torch
    except ImportError as error:
        raise ImportError(f"hetseq needs torch, which {sys.executable} cannot import ({error}): install it, or load "
                          "its module or environment") from error
    return torch


def check_torch(library: pathlib.Path, version: str, cuda: str | None) -> None:
    """Raises ImportError unless `library` was built for torch `version` ("2.11.0+cpu"; what follows the + is not
    compared) with CUDA `cuda` ("13.0", None without). A library for CPUs runs with a torch of any CUDA."""
    try:
        built = json.loads(library.with_suffix(".json").read_text())
    except (OSError, ValueError) as error:
        raise ImportError(f"what torch {library} was built for cannot be read ({error}): build or install hetseq again"
                          ) from error
    if built["torch"] != version.split("+")[0]:
        raise ImportError(f"hetseq was built for torch {built['torch']}, and this is torch {version}: "
                          f"install torch {built['torch']}, or {_REBUILD}")
    if built["cuda"] and built["cuda"].split(".")[0] != (cuda or "").split(".")[0]:
        raise ImportError(f"hetseq was built for torch with CUDA {built['cuda']}, and this torch has "
                          f"{f'CUDA {cuda}' if cuda else 'no CUDA'}: install such a torch, or {_REBUILD}")


def load() -> None:
    """Makes the operators torch.ops.hetseq.* available. Raises ImportError where there is no library, it cannot be
    loaded, or it was built for another torch; nothing of it is loaded then."""
    torch = import_torch()
    library = find_library()
    check_torch(library, torch.__version__, torch.version.cuda)
    try:
        torch.ops.load_library(str(library))
    except OSError as error:
        raise ImportError(f"{library} cannot be loaded ({error}): load the MPI and HDF5 that hetseq was built with "
                          "(its module), or build it again") from error


def version() -> str:
    """hetseq's version."""
    return import_torch().ops.hetseq.version()


load()
