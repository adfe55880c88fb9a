"""Makes photos/train and photos/valid, of noise with a class's colour, for the scripts of this folder to be tried with."""
import pathlib

import numpy
from PIL import Image

draw = numpy.random.default_rng(1)
for split, count in (("train", 64), ("valid", 13)):
    for label in range(10):
        folder = pathlib.Path(f"photos/{split}/{label}")
        folder.mkdir(parents=True, exist_ok=True)
        colour = numpy.array([label % 3, label // 3 % 3, label // 9]) * 40
        for i in range(count):
            pixels = (draw.integers(0, 176, (32, 32, 3)) + colour).astype(numpy.uint8)
            Image.fromarray(pixels).save(folder / f"{i}.png")
