"""Folders of images: hetseq.from_images, hetseq.decode_image, and inputs/python/image_folder.py on what they wrote."""

import io
import json
import pathlib
import threading
import unittest
import unittest.mock

from harness import ROOT, Case, need

need("torch", "numpy", "h5py", "safetensors", "PIL")

import h5py
import numpy as np
import torch
from PIL import Image

import hetseq
from hetseq import images


def encoded(image, kind, **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


class DecodeTest(unittest.TestCase):
    """By torchvision where it is installed, and by Pillow."""

    def setUp(self):
        squares = np.random.default_rng(1).integers(0, 256, (4, 5, 3), dtype=np.uint8)
        self.image = Image.fromarray(np.kron(squares, np.ones((8, 8, 1), np.uint8)))  # 32 rows of 40

    def decoded(self, data, mode="RGB"):
        image = hetseq.decode_image(data, mode)
        with unittest.mock.patch.object(images, "_torchvision", lambda: None):
            by_pillow = hetseq.decode_image(torch.frombuffer(bytearray(data), dtype=torch.uint8), mode)
        self.assertEqual((image.dtype, image.permute(1, 2, 0).is_contiguous()), (torch.uint8, True))
        torch.testing.assert_close(image, by_pillow, rtol=0, atol=4)  # two versions of libjpeg may round apart
        return image

    def expected(self, image):
        return torch.from_numpy(np.array(image.convert("RGB"))).permute(2, 0, 1)

    def test_colours_grey_palette_alpha_and_cmyk_become_rgb(self):
        see_through = self.image.convert("RGBA")
        see_through.putalpha(0)
        for mode, kind in (("RGB", "PNG"), ("L", "PNG"), ("P", "PNG"), ("LA", "PNG"), ("1", "PNG"), ("RGB", "BMP"),
                           ("RGB", "TIFF")):
            with self.subTest(mode, kind=kind):
                image = self.image.convert(mode)
                self.assertTrue(torch.equal(self.decoded(encoded(image, kind)), self.expected(image)))
        self.assertTrue(torch.equal(self.decoded(encoded(see_through, "PNG")), self.expected(self.image)))
        for mode in ("RGB", "L", "CMYK"):
            with self.subTest(mode, kind="JPEG"):
                data = encoded(self.image.convert(mode), "JPEG", quality=95)
                torch.testing.assert_close(self.decoded(data), self.expected(Image.open(io.BytesIO(data))), rtol=0, atol=4)

    def test_of_16_bits_the_higher_8_are_kept(self):
        values = (np.arange(32 * 40).reshape(32, 40) * 51).astype(np.uint16)

        image = self.decoded(encoded(Image.fromarray(values), "PNG"))

        np.testing.assert_array_equal(image, np.broadcast_to(values >> 8, (3, 32, 40)))

    def test_shades_of_grey_have_one_channel(self):
        image = self.decoded(encoded(self.image, "PNG"), "L")

        np.testing.assert_array_equal(image[0], np.array(self.image.convert("L")))
        self.assertEqual(tuple(image.shape), (1, 32, 40))

    def test_the_orientation_of_exif_is_not_applied(self):
        turned = Image.Exif()
        turned[0x112] = 6

        self.assertEqual(tuple(self.decoded(encoded(self.image, "JPEG", exif=turned)).shape), (3, 32, 40))

    def test_what_is_no_image_is_refused(self):
        jpeg = encoded(self.image, "JPEG")
        for data in (jpeg[:len(jpeg) // 2], b"a text", b"\x89PNG\r\n\x1a\nno", b""):
            for decoder in (images._torchvision, lambda: None):
                with self.subTest(data[:8]), unittest.mock.patch.object(images, "_torchvision", decoder):
                    self.assertRaisesRegex(ValueError, "mend the file", hetseq.decode_image, data)
        self.assertRaisesRegex(ValueError, "give 'RGB' or 'L'", hetseq.decode_image, jpeg, "CMYK")
        self.assertRaisesRegex(ValueError, "give the bytes", hetseq.decode_image, torch.zeros(3))


class FolderTest(Case):
    def setUp(self):
        super().setUp()
        self.draw = np.random.default_rng(2)
        self.files = {}  # by name below the folder
        for name in ("cat/b.jpg", "cat/A.JPEG", "cat/deep/er/c.png", "dog/1.png", "dog/2.webp", "dog/3.bmp"):
            self.add(name)
        self.add("dog/notes.txt", b"no image")
        (self.folder / "in" / "README").write_text("no class")

    def add(self, name, data=None):
        kind = {"jpg": "JPEG"}.get(name.lower().split(".")[-1], name.split(".")[-1].upper())
        if data is None:
            height, width = self.draw.integers(20, 50, 2)
            colour = (200, 40, 40) if name.startswith("cat") else (40, 40, 200)
            data = encoded(Image.new("RGB", (int(width), int(height)), colour), kind)
        path = self.folder / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        self.files[name] = data

    def write(self, name, text=None, **options):
        if text is not None:
            return super().write(name, text)
        return hetseq.from_images(self.folder / "in", self.folder / name, **options)

    def rows(self, paths):
        found = []
        for path in paths:
            with h5py.File(path) as file:
                offsets, labels = file["image_offsets"][:], file["label"][:]
                self.assertEqual((file["image"].dtype, file["image"].compression, labels.dtype), (np.uint8, None, np.int64))
                found += [(file["image"][a:b].tobytes(), label) for a, b, label in zip(offsets, offsets[1:], labels)]
        return found

    def refused(self, text, **options):
        before = sorted(self.folder.rglob("*.h5*"))
        with self.assertRaises((ValueError, FileNotFoundError)) as caught:
            self.write("out", **options)
        self.assertIn(text, str(caught.exception))
        self.assertEqual(sorted(self.folder.rglob("*.h5*")), before)

    def test_files_are_stored_as_they_are(self):
        names = ["cat/A.JPEG", "cat/b.jpg", "cat/deep/er/c.png", "dog/1.png", "dog/2.webp", "dog/3.bmp"]
        expected = [(self.files[name], int(name.startswith("dog"))) for name in names]

        self.assertEqual(self.rows(self.write("in-order", shuffle=False, rows_per_shard=4)), expected)
        shuffled = self.rows(self.write("shuffled"))
        self.assertEqual(self.rows(self.write("again")), shuffled)
        self.assertEqual(sorted(shuffled), sorted(expected))
        self.assertNotEqual(shuffled, expected)
        self.assertEqual(hetseq.image_classes(self.folder / "in-order"), ["cat", "dog"])

    def test_order_is_that_of_ImageFolder(self):
        try:
            from torchvision.datasets import ImageFolder
        except ImportError:
            self.skipTest("torchvision cannot be imported")

        samples = ImageFolder(self.folder / "in").samples

        self.assertEqual(self.rows(self.write("out", shuffle=False)),
                         [(pathlib.Path(path).read_bytes(), label) for path, label in samples])

    def test_classes_can_be_given(self):
        self.assertEqual({label for _, label in self.rows(self.write("out", classes=["dog", "fish", "cat"]))}, {0, 2})
        self.assertEqual(hetseq.image_classes(self.folder / "out" / "train*.h5"), ["dog", "fish", "cat"])
        self.refused("dog is none of the 1 classes", classes=["cat"])
        self.refused("names one twice", classes=["cat", "dog", "cat"])

    def test_many_long_names_of_classes_are_kept(self):
        for i in range(700):
            self.add(f"{i:03}-{'x' * 100}/a.png", self.files["dog/1.png"])

        self.write("out", verify=False)

        self.assertEqual(len(hetseq.image_classes(self.folder / "out")), 702)

    def test_a_broken_file_is_named(self):
        whole = self.files["cat/b.jpg"]
        for name, data in (("dog/cut.jpg", whole[:len(whole) // 2]), ("dog/text.jpg", b"this is a text"), ("dog/empty.png", b"")):
            with self.subTest(name):
                self.add(name, data)
                self.refused(name)
                (self.folder / "in" / name).unlink()
        self.add("dog/text.jpg", b"this is a text")
        self.assertEqual(len(self.write("unread", verify=False)), 1)
        self.assertEqual(threading.active_count(), 1)

    def test_folders_that_do_not_fit_are_named(self):
        (self.folder / "in" / "empty").mkdir()
        self.refused("empty holds no image")
        with self.assertRaisesRegex(FileNotFoundError, "has no folders"):
            hetseq.from_images(self.folder / "in" / "empty", self.folder / "out")
        with self.assertRaisesRegex(ValueError, "names no classes"):
            hetseq.image_classes(hetseq.write_shards({"x": np.zeros(3)}, self.folder / "other")[0])
        self.assertRaises(FileNotFoundError, hetseq.image_classes, self.folder / "none*.h5")

    def test_the_example_trains_on_two_ranks(self):
        for i in range(32):
            self.add(f"{'cat' if i % 2 else 'dog'}/more-{i}.png")
        self.write("out")

        self.hetseq(2, "train", f"{ROOT}/inputs/python/image_folder.py:Photos", "--data", "out/train*.h5", "--valid-data",
                    "out/train*.h5", "--classes", "2", "--side", "16", "--width", "8", "--batch-size", "19", "--max-epoch", "8",
                    "--save-dir", "run")

        last = [json.loads(line) for line in (self.folder / "run/metrics.jsonl").read_text().splitlines()][-1]
        self.assertGreater(last["accuracy"], 0.95)


if __name__ == "__main__":
    unittest.main(verbosity=2)
