"""Folders of images to shards of encoded bytes, and images from those bytes."""
from __future__ import annotations

import collections
import concurrent.futures
import functools
import glob
import io
import json
import os
import pathlib
import random
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Optional

import torch

from . import shards

__all__ = ["decode_image", "from_images", "image_classes"]

_EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")  # those of ImageFolder
_MOST_THREADS = 32
_FILES_AHEAD = 4  # for each thread, read and not yet written
_MAGIC_OF_TORCHVISION = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n")  # JPEG and PNG
_TINY_PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452000000010000000108000000003a"
                          "7e9b550000000a49444154789c636000000002000148afa4710000000049"
                          "454e44ae426082")


def from_images(
    folder: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    name: str = "train",
    classes: Sequence[str] | None = None,
    rows_per_shard: int | None = None,
    overwrite: bool = False,
    verify: bool = True,
    shuffle: bool = True,
) -> list[pathlib.Path]:
    """Writes the images FOLDER/CLASS/... as shards OUTPUT/NAME-00000-of-00002.h5 and so on, and returns the paths.

    The fields are `image`, the bytes of the files as they are (hetseq.Bytes), and `label`, int64. Under a class's folder,
    the images of all folders are its own. As torchvision's ImageFolder does, files are taken by the ends of their names
    (jpg, jpeg, png, ppm, bmp, pgm, tif, tiff, webp, in any case), and others are left out.

    name, rows_per_shard, overwrite: as those of `write_shards`, whose errors it raises.
    classes: names in the order of their labels, such as `image_classes` of the training's shards, some of which may have no
        folder here; None: the folders' names in alphabetical order.
    verify: decodes each image, and refuses one that is broken; False only reads the files.
    shuffle: writes the images in an order that is drawn once and for all, since those that lie together in a file are read
        together; False: one class after the other.

    Several threads read and decode; some files of each, and about 16 MiB, are in memory at a time.

    Raises ValueError that names the file or folder: a broken image, a class without images, a folder that is none of
    `classes`. FileNotFoundError where there is no such folder or it holds no classes.
    """
    folder = pathlib.Path(folder)
    names = _class_names(folder, classes)
    files = [(path, label) for label, own in enumerate(names) for path in _images_of(folder / own, classes is not None)]
    if not files:
        raise ValueError(f"{folder} holds no image of the classes {', '.join(map(repr, names[:5]))}: look at its path")
    if shuffle:
        random.Random(0).shuffle(files)
    samples = ({"image": data, "label": label} for data, label in _read(files, verify))
    return shards._write(shards._gathered(samples), output, name=name, rows_per_shard=rows_per_shard, compression=None,
                         ragged={"image": (None,)}, dtypes={"label": "int64"}, overwrite=overwrite,
                         attributes={"classes": json.dumps(names, ensure_ascii=False)})


def image_classes(path: str | os.PathLike[str]) -> list[str]:
    """The names of the classes of shards that `from_images` wrote, in the order of their labels. `path`: a file, a folder or
    a glob; all shards must have the same. Raises ValueError or FileNotFoundError."""
    text = os.fspath(path)
    paths = [text] if os.path.isfile(text) else sorted(
        glob.glob(os.path.join(glob.escape(text), "*.h5")) if os.path.isdir(text) else glob.glob(text))
    if not paths:
        raise FileNotFoundError(f"{text} names no shards: give a file, a folder or a glob")
    found = {one: _classes_in(one) for one in paths}
    for one, classes in found.items():
        if classes != found[paths[0]]:
            raise ValueError(f"{one} has other classes than {paths[0]}: name shards that were written with the same")
    return found[paths[0]]


def decode_image(data: torch.Tensor | bytes, mode: str = "RGB") -> torch.Tensor:
    """An encoded image as (3, height, width) uint8, or (1, height, width) for mode "L", shades of grey. In memory the channels
    of a pixel lie side by side, as torchvision's transforms of uint8 like it.

    data: (bytes) uint8 on the CPU, a row of a field of hetseq.Bytes, or `bytes`. RGB of JPEG and PNG is decoded by
    torchvision.io where it is installed, else by Pillow, to the same values where both have the same libjpeg.

    Images of grey or with a palette become RGB; the alpha of RGBA is left out, and not blended; CMYK is converted without a
    colour profile; of 16-bit values the higher 8 bits are kept. The orientation that EXIF tells is not applied. Raises
    ValueError for a broken image, ImportError where Pillow is needed and missing.
    """
    if mode not in ("RGB", "L"):
        raise ValueError(f"mode={mode!r} is unknown: give 'RGB' or 'L'")
    if len(data) == 0:
        raise ValueError("there are no bytes, and so no image: mend the file")
    encoded = data if isinstance(data, torch.Tensor) else torch.frombuffer(bytearray(data), dtype=torch.uint8)
    if encoded.dtype != torch.uint8 or encoded.dim() != 1:
        raise ValueError(f"the data has the shape {tuple(encoded.shape)} and the type {encoded.dtype}: give the bytes of an "
                         "image file, (bytes) uint8")
    head = bytes(encoded[:8].tolist())
    decode = _torchvision() if mode == "RGB" and head.startswith(_MAGIC_OF_TORCHVISION) else None
    try:
        image = _by_pillow(encoded, mode) if decode is None else decode(encoded)
    except ImportError:
        raise
    except Exception as error:  # each decoder has errors of its own
        raise ValueError(f"these {len(encoded):,} bytes are no image that can be decoded ({_first_line(error)}): mend the "
                         "file") from error
    if image.dtype == torch.uint16:
        image = (image.to(torch.int32) >> 8).to(torch.uint8)
    return image.permute(1, 2, 0).contiguous().permute(2, 0, 1)  # decoders give it so: nothing is copied


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]


@functools.lru_cache(maxsize=1)
def _torchvision() -> Optional[Callable[[torch.Tensor], torch.Tensor]]:
    """Its decoder to RGB, which gives the values that Pillow does; None where it is missing, or was built without one."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that its library could not be loaded
            from torchvision.io import ImageReadMode
            from torchvision.io import decode_image as decode
        decode(torch.frombuffer(bytearray(_TINY_PNG), dtype=torch.uint8), ImageReadMode.RGB)
    except Exception:  # of versions that do not fit torch, too
        return None
    return lambda data: decode(data, ImageReadMode.RGB)


def _by_pillow(encoded: torch.Tensor, mode: str) -> torch.Tensor:
    try:
        import numpy as np
        from PIL import Image, UnidentifiedImageError
    except ImportError as error:
        raise ImportError("images are decoded by torchvision (JPEG and PNG) or Pillow: pip install pillow") from error
    try:
        image = Image.open(io.BytesIO(encoded.numpy().tobytes()))
    except UnidentifiedImageError:
        raise ValueError("of no known format") from None
    with image:
        if image.mode.startswith("I"):  # 16 bits, which Pillow's own conversion cuts off at 255
            image = Image.fromarray((np.asarray(image).astype(np.uint32) >> 8).clip(0, 255).astype(np.uint8))
        elif image.mode == "F":
            raise ValueError("its values are floating-point numbers")
        values = np.array(image.convert(mode))
    return torch.from_numpy(values.reshape(*values.shape[:2], -1)).permute(2, 0, 1)


def _class_names(folder: pathlib.Path, classes: Sequence[str] | None) -> list[str]:
    found = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
    if not found:
        raise FileNotFoundError(f"{folder} has no folders: put the images of each class into a folder of its name")
    if classes is None:
        return found
    names = [classes] if isinstance(classes, str) else list(classes)
    if len(set(names)) < len(names):
        raise ValueError("classes names one twice: give each its own label")
    if unknown := [name for name in found if name not in set(names)]:
        raise ValueError(f"{folder / unknown[0]} is none of the {len(names)} classes: add it to them, or move the folder away")
    return names


def _images_of(folder: pathlib.Path, may_be_missing: bool) -> list[str]:
    """In the order of ImageFolder."""
    if may_be_missing and not folder.exists():
        return []
    found = [os.path.join(root, file) for root, _, files in sorted(os.walk(folder, followlinks=True))
             for file in sorted(files) if file.lower().endswith(_EXTENSIONS)]
    if not found:
        raise ValueError(f"{folder} holds no image (a class needs one at least): remove the folder, or add files that end with "
                         f"{', '.join(_EXTENSIONS)}")
    return found


def _read_file(path: str, verify: bool) -> bytes:
    with open(path, "rb") as file:
        data = file.read()
    if verify:
        try:
            decode_image(data)
        except ValueError as error:
            raise ValueError(f"{path}: {error}, or leave it out") from error
    return data


def _read(files: Iterable[tuple[str, int]], verify: bool) -> Iterator[tuple[bytes, int]]:
    """The bytes and labels, in the order given; the first broken file is the error."""
    if verify:
        _torchvision()  # once, before the threads
    count = min(_MOST_THREADS, len(os.sched_getaffinity(0)))
    ahead: collections.deque[tuple[Any, int]] = collections.deque()
    with concurrent.futures.ThreadPoolExecutor(count) as threads:
        try:
            for path, label in files:
                ahead.append((threads.submit(_read_file, path, verify), label))
                if len(ahead) > count * _FILES_AHEAD:
                    future, first = ahead.popleft()
                    yield future.result(), first
            while ahead:
                future, first = ahead.popleft()
                yield future.result(), first
        finally:
            threads.shutdown(cancel_futures=True)


def _classes_in(path: str) -> list[str]:
    with shards._import_h5py().File(path, "r", locking=False) as file:
        text = file.attrs.get("classes")
    if not isinstance(text, str):
        raise ValueError(f"{path} names no classes (the attribute 'classes'): write it by hetseq.from_images")
    return json.loads(text)
