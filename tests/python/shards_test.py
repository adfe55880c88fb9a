"""hetseq.write_shards and the converters: what the files hold, that `hetseq check` accepts them, what is refused."""
import csv
import gzip
import os
import pathlib
import subprocess
import tempfile
import unittest
import unittest.mock

import h5py
import numpy as np
import torch

from harness import Case
from hetseq import shards


def read(paths, field):
    """A field of all shards, laid end to end; a ragged one as a list of rows."""
    found = []
    for path in paths:
        with h5py.File(path) as file:
            values = file[field][:]
            if f"{field}_offsets" in file:
                offsets = file[f"{field}_offsets"][:]
                assert offsets.dtype == np.int64 and offsets[0] == 0 and offsets[-1] == len(values)
                found += [values[a:b].tolist() for a, b in zip(offsets, offsets[1:])]
            else:
                found += list(values)
    return found if found and isinstance(found[0], list) else np.stack(found)


class ShardsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.random = np.random.default_rng(1)

    def refused(self, error, text, write):
        """`write` raises `error` with `text` in it, and leaves nothing behind."""
        before = sorted(self.folder.rglob("*.h5*"))
        with self.assertRaises(error) as caught:
            write()
        self.assertIn(text, str(caught.exception))
        self.assertEqual(sorted(self.folder.rglob("*.h5*")), before)


class ArraysTest(ShardsTest):
    def images(self, count):
        return {"images": self.random.integers(0, 256, (count, 28, 28), dtype=np.uint8),
                "labels": torch.arange(count) % 10}

    def test_all_samples_in_order_across_shards(self):
        data = self.images(1000)

        paths = shards.write_shards(data, self.folder, rows_per_shard=300)

        self.assertEqual([path.name for path in paths], [f"train-{i:05}-of-00004.h5" for i in range(4)])
        self.assertEqual(sorted(self.folder.iterdir()), paths)
        np.testing.assert_array_equal(read(paths, "images"), data["images"])
        np.testing.assert_array_equal(read(paths, "labels"), data["labels"].numpy())
        with h5py.File(paths[3]) as file:
            images = file["images"]
            self.assertEqual((len(images), images.dtype, images.compression), (100, "u1", "gzip"))

    def test_check_accepts_them(self):
        for compression in ("gzip", None):
            data = self.images(500)
            folder = self.folder / str(compression)
            shards.write_shards(data, folder, rows_per_shard=200, compression=compression)

            checked = subprocess.run([os.environ["HETSEQ_PROGRAM"], "check", "--task", "mnist", "--data", folder],
                                     capture_output=True, text=True, check=False)

            self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
            self.assertIn(f"{data['images'].sum(dtype=np.int64):,}".replace(",", ""),
                          checked.stdout.replace(",", ""))

    def test_every_type_that_can_be_stored(self):
        for dtype in ("u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8", "?"):
            with self.subTest(dtype):
                values = np.array([[0, 1], [1, 0], [1, 1]]).astype(dtype)

                paths = shards.write_shards({"x": values}, self.folder, name=f"of-{np.dtype(dtype).name}")

                with h5py.File(paths[0]) as file:
                    self.assertEqual(file["x"].dtype, dtype)
                    np.testing.assert_array_equal(file["x"], values)

    def test_a_list_of_unequal_rows_is_ragged(self):
        rows = [[1, 2, 3], [], [4], [5, 6]]

        paths = shards.write_shards({"tokens": rows, "label": [7, 8, 9, 10]}, self.folder, rows_per_shard=3,
                                    dtypes={"tokens": "uint16"})

        self.assertEqual(read(paths, "tokens"), rows)
        self.assertEqual(read(paths, "label").tolist(), [7, 8, 9, 10])
        with h5py.File(paths[0]) as file:
            self.assertEqual(file["tokens"].dtype, np.uint16)

    def test_rows_that_differ_late_in_a_list_are_ragged(self):
        rows = [[1, 2]] * 3000 + [[3]]

        paths = shards.write_shards({"tokens": rows}, self.folder)

        self.assertEqual(read(paths, "tokens"), rows)

    def test_a_memory_mapped_array_is_read_in_pieces(self):
        path = self.folder / "x.npy"
        values = self.random.standard_normal((3000, 4096)).astype("float32")  # 48 MB
        np.save(path, values)

        paths = shards.write_shards({"x": np.load(path, mmap_mode="r")}, self.folder, compression=None)

        np.testing.assert_array_equal(read(paths, "x"), values)

    def test_what_is_refused(self):
        write = lambda **data: lambda: shards.write_shards(data, self.folder)
        self.refused(ValueError, "unequal numbers of samples: 'a' 3, 'b' 2", write(a=np.zeros(3), b=np.zeros(2)))
        self.refused(ValueError, "sample 2: the value nan is not finite", write(a=np.array([0, 1, np.nan])))
        self.refused(TypeError, "is text", write(a=np.array(["one", "two"])))
        self.refused(TypeError, "of type complex128", write(a=np.zeros(2, complex)))
        self.refused(TypeError, "bfloat16", write(a=torch.zeros(2, dtype=torch.bfloat16)))
        self.refused(ValueError, "first dimension must be the samples", write(a=np.zeros(())))
        self.refused(ValueError, "no samples", write(a=np.zeros((0, 3))))
        self.refused(ValueError, "no fields", lambda: shards.write_shards([{}], self.folder))
        self.refused(ValueError, "offsets", write(a=[[1], [1, 2]], a_offsets=[0, 1]))
        self.refused(ValueError, "sample 1: the value 300 does not fit uint8",
                     lambda: shards.write_shards({"a": np.array([1, 300])}, self.folder, dtypes={"a": "uint8"}))
        self.refused(ValueError, "sample 0: the value -1 does not fit uint16",
                     lambda: shards.write_shards({"a": [[-1], [1, 2]]}, self.folder, dtypes={"a": "uint16"}))
        self.refused(ValueError, "not finite as float16",
                     lambda: shards.write_shards({"a": np.array([1e6])}, self.folder, dtypes={"a": "float16"}))
        self.refused(ValueError, "no field of the data",
                     lambda: shards.write_shards({"a": np.zeros(2)}, self.folder, ragged=["b"]))
        for option, value in ("rows_per_shard", 0), ("compression", "lzf"), ("name", ""):
            self.refused(ValueError, f"{option}={value!r}",
                         lambda: shards.write_shards({"a": np.zeros(2)}, self.folder, **{option: value}))

    def test_existing_shards_are_replaced_only_when_asked(self):
        old = shards.write_shards({"a": np.zeros(4)}, self.folder, rows_per_shard=1)
        other = shards.write_shards({"a": np.zeros(4)}, self.folder, name="valid")
        self.refused(FileExistsError, "overwrite=True", lambda: shards.write_shards({"a": np.ones(4)}, self.folder))
        self.refused(ValueError, "not finite",
                     lambda: shards.write_shards({"a": np.array([np.inf])}, self.folder, overwrite=True))
        self.assertEqual(read(old, "a").tolist(), [0] * 4)

        new = shards.write_shards({"a": np.ones(4)}, self.folder, rows_per_shard=3, overwrite=True)

        self.assertEqual(sorted(self.folder.iterdir()), sorted(new + other))
        self.assertEqual(read(new, "a").tolist(), [1] * 4)

    def test_an_interrupted_replacement_is_marked(self):
        shards.write_shards({"a": np.zeros(4)}, self.folder, rows_per_shard=1)

        with unittest.mock.patch("os.replace", side_effect=KeyboardInterrupt), self.assertRaises(KeyboardInterrupt):
            shards.write_shards({"a": np.ones(4)}, self.folder, rows_per_shard=1, overwrite=True)

        self.assertEqual([path.name for path in self.folder.iterdir()], ["prepare.unfinished"])
        shards.write_shards({"a": np.ones(4)}, self.folder, name="valid")  # another set changes nothing of that
        self.assertTrue((self.folder / "prepare.unfinished").exists())
        shards.write_shards({"a": np.ones(4)}, self.folder, overwrite=True)
        self.assertFalse((self.folder / "prepare.unfinished").exists())


class SamplesTest(ShardsTest):
    def test_a_generator_of_samples(self):
        lengths = self.random.integers(0, 50, 2500)
        samples = [{"tokens": list(range(n)), "image": np.full((2, 3), n, np.uint8), "weight": float(n)}
                   for n in lengths]

        paths = shards.write_shards((sample for sample in samples), self.folder, rows_per_shard=1100)

        self.assertEqual(len(paths), 3)
        self.assertEqual(read(paths, "tokens"), [sample["tokens"] for sample in samples])
        np.testing.assert_array_equal(read(paths, "image")[:, 1, 2], lengths)
        np.testing.assert_array_equal(read(paths, "weight"), lengths)

    def test_rows_that_differ_late_are_an_error_unless_they_were_named(self):
        samples = [{"tokens": [1, 2]}] * 3000 + [{"tokens": [1]}]
        self.refused(ValueError, "sample 3000, has the shape (1,), those before (2,): give ragged=['tokens']",
                     lambda: shards.write_shards(iter(samples), self.folder))

        paths = shards.write_shards(iter(samples), self.folder, ragged=["tokens"])

        self.assertEqual(read(paths, "tokens"), [sample["tokens"] for sample in samples])

    def test_what_is_refused(self):
        write = lambda *samples: lambda: shards.write_shards(iter(samples), self.folder)
        self.refused(ValueError, "sample 1 has the fields 'b'", write({"a": 1}, {"b": 1}))
        self.refused(TypeError, "sample 1 is no dict", write({"a": 1}, 2))
        self.refused(TypeError, "sample 0, is text", write({"a": "one"}))
        self.refused(ValueError, "those before", write({"a": np.zeros((2, 2))}, {"a": np.zeros(2)}))
        late = [{"a": 1}] * 1500 + [{"a": 0.5}]
        self.refused(TypeError, "sample 1500, is of type float64", write(*late))

    def test_what_has_a_length_ends_there(self):
        class Squares(torch.utils.data.Dataset):
            def __init__(self, length, end=10**9):
                self.length, self.end = length, end

            def __len__(self):
                return self.length

            def __getitem__(self, i):
                if i >= self.end:
                    raise IndexError(i)
                return {"x": i * i}

        class Walk(Squares):
            def __iter__(self):
                return map(self.__getitem__, range(self.end))

        class Stream(torch.utils.data.IterableDataset):
            def __iter__(self):
                return iter(Squares(4)[i] for i in range(4))

            def __len__(self):
                return 3  # an estimate

        class Endless:
            def __getitem__(self, i):
                return {"x": i}

        for data in (Squares(4), Walk(4, 4), Stream(), [{"x": i * i} for i in range(4)]):
            paths = shards.write_shards(data, self.folder, overwrite=True)
            self.assertEqual(read(paths, "x").tolist(), [0, 1, 4, 9])
        write = lambda data: lambda: shards.write_shards(data, self.folder, name="bad")
        self.refused(ValueError, "Squares says that it has 5 samples (__len__) and ends after 3", write(Squares(5, 3)))
        self.refused(ValueError, "Walk says that it has 5 samples (__len__) and ends after 3", write(Walk(5, 3)))
        self.refused(ValueError, "Walk says that it has 5 samples (__len__) and goes on", write(Walk(5, 8)))
        self.refused(TypeError, "Endless gives samples by number and has no __len__", write(Endless()))
        self.refused(TypeError, "a DataLoader gives batches", write(torch.utils.data.DataLoader(Squares(4))))
        self.refused(TypeError, "no dataset of the package `datasets`",
                     lambda: shards.from_dataset(Squares(4), self.folder, name="bad"))

    def test_an_error_of_the_generator_comes_through(self):
        def samples():
            yield from ({"a": i} for i in range(2000))
            raise OSError("the source broke")

        self.refused(OSError, "the source broke",
                     lambda: shards.write_shards(samples(), self.folder, rows_per_shard=100))


class UnequalRowsTest(ShardsTest):
    """Of several dimensions, and bytes."""

    def rows(self, *shapes):
        return [self.random.normal(size=shape).astype("f4") for shape in shapes]

    def stored(self, paths, field):
        """The rows, flat, and the shapes that stand beside them."""
        shapes = []
        for path in paths:
            with h5py.File(path) as file:
                shapes += file[f"{field}_shape"][:].tolist() if f"{field}_shape" in file else []
        return read(paths, field), shapes

    def test_dimensions_that_differ_are_found(self):
        sounds, images = self.rows((2, 3), (0, 3), (4, 3)), self.rows((3, 2, 5), (3, 4, 1), (3, 2, 2))
        samples = [{"sound": sound, "image": image} for sound, image in zip(sounds, images)]
        columns = {"sound": sounds, "image": [image.tolist() for image in images]}

        for name, data in (("stream", iter(samples)), ("columns", columns)):
            with self.subTest(name):
                paths = shards.write_shards(data, self.folder / name, rows_per_shard=2, dtypes={"image": "f4"})

                self.assertEqual(self.stored(paths, "sound"), ([row.ravel().tolist() for row in sounds], []))
                self.assertEqual(self.stored(paths, "image"), ([row.ravel().tolist() for row in images],
                                                               [list(row.shape) for row in images]))

    def test_rows_that_do_not_lie_in_order_are_stored_in_row_major_order(self):
        rows = [row.transpose(1, 0) for row in self.rows((3, 2), (3, 4))]

        paths = shards.write_shards({"x": rows}, self.folder)

        self.assertEqual(self.stored(paths, "x"), ([row.flatten().tolist() for row in rows], []))

    def test_bytes_keep_their_zeros(self):
        for name, rows in (("equal", [b"a\0", b"b\0"]), ("unequal", [b"", b"\0\xff", b"c"])):
            for data in ({"x": rows}, iter([{"x": row} for row in rows])):
                with self.subTest(name):
                    paths = shards.write_shards(data, self.folder, name=name, overwrite=True)

                    self.assertEqual(self.stored(paths, "x"), ([list(row) for row in rows], []))

    def test_what_is_refused(self):
        write = lambda *shapes, **options: lambda: shards.write_shards(
            ({"x": row} for row in self.rows(*shapes)), self.folder, **options)

        self.refused(ValueError, "its rows have 1 or 2 dimensions", write((2, 3), (3,), ragged=["x"]))
        self.refused(ValueError, "ragged={'x': (None, 3)}", write((2, 3), (2, 3), ragged=["x"]))
        self.refused(ValueError, "sample 1, has 1 dimensions ((3,)): a row has 2", write((2, 3), (3,), ragged={"x": (None, 3)}))
        self.refused(ValueError, "sample 1, has the shape (2, 4), and a row has (None, 3): mend the row, or give "
                     "ragged={'x': (None, None)}", write((2, 3), (2, 4), ragged={"x": (None, 3)}))
        self.refused(ValueError, "None for each dimension", write((2, 3), ragged={"x": (2, 3)}))
        self.refused(ValueError, "where the ragged field 'x' has its shapes", lambda: shards.write_shards(
            {"x": self.rows((1, 2), (2, 1)), "x_shape": [1, 2]}, self.folder))
        same, late = [{"x": row} for row in self.rows((2, 3))] * 3000, [{"x": row} for row in self.rows((3, 3))]
        self.refused(ValueError, "sample 3000, has the shape (3, 3), those before (2, 3): give ragged={'x': (None, 3)}",
                     lambda: shards.write_shards(iter(same + late), self.folder))


class ConvertersTest(ShardsTest):
    def test_npz(self):
        data = {"x": self.random.standard_normal((10, 3)), "y": np.arange(10)}
        np.savez_compressed(self.folder / "data.npz", **data)

        paths = shards.from_npz(self.folder / "data.npz", self.folder)

        np.testing.assert_array_equal(read(paths, "x"), data["x"])
        np.testing.assert_array_equal(read(paths, "y"), data["y"])
        self.refused(ValueError, "has no 'z'; it has 'x', 'y'",
                     lambda: shards.from_npz(self.folder / "data.npz", self.folder, fields=["z"], overwrite=True))

    def table(self, name, lines):
        path = self.folder / name
        with (gzip.open if name.endswith(".gz") else open)(path, "wt", newline="") as file:
            csv.writer(file).writerows(lines)
        return path

    def test_csv(self):
        lines = [[i, i / 4, -i, "name"] for i in range(1500)]
        for name in ("table.csv", "table.csv.gz"):
            path = self.table(name, [["id", "height", "depth", "who"], *lines])

            paths = shards.from_csv(path, self.folder, columns={"at": ["height", "depth"], "id": "id"}, name=name,
                                    dtypes={"id": "uint16"})

            np.testing.assert_array_equal(read(paths, "at"), [line[1:3] for line in lines])
            np.testing.assert_array_equal(read(paths, "id"), np.arange(1500))
        paths = shards.from_csv(path, self.folder, columns=["depth", "height"])
        self.assertEqual((read(paths, "depth").dtype, read(paths, "height").dtype), (np.int64, np.float64))

    def test_csv_that_is_refused(self):
        convert = lambda path, **options: lambda: shards.from_csv(path, self.folder, **options)
        path = self.table("a.csv", [["a", "b"], [1, 2], [3, "n/a"]])
        self.refused(ValueError, "a.csv, line 3, column 'b': found 'n/a', expected a number", convert(path))
        self.refused(ValueError, "found 'n/a', expected an integer", convert(path, dtypes={"b": "int32"}))
        self.refused(ValueError, "has no 'c'; it has 'a', 'b'", convert(path, columns=["c"]))
        self.refused(ValueError, "found nothing", convert(self.table("b.csv", [["a", "b"], [1]])))
        self.refused(ValueError, "is empty", convert(self.table("c.csv", [])))
        self.refused(ValueError, "d.csv, line 2 has 3 columns, and the first line names 2",
                     convert(self.table("d.csv", [["a", "b"], [1, 2, 3]])))

    def test_a_byte_order_mark_is_no_part_of_a_name(self):
        path = self.table("a.csv", [["\ufeffid"], [7]])
        np.testing.assert_array_equal(read(shards.from_csv(path, self.folder), "id"), [7])

    def test_dataset(self):
        dataset = DatasetInBatches({"ids": [list(range(i % 7)) for i in range(2200)], "label": np.arange(2200)})

        paths = shards.from_dataset(dataset, self.folder, fields={"input_ids": "ids", "label": "label"},
                                    dtypes={"input_ids": "int32"})

        self.assertEqual(read(paths, "input_ids"), dataset.columns["ids"])
        np.testing.assert_array_equal(read(paths, "label"), np.arange(2200))
        self.refused(ValueError, "has no 'text'",
                     lambda: shards.from_dataset(dataset, self.folder, fields=["text"], overwrite=True))
        self.refused(TypeError, "dataset['train']", lambda: shards.from_dataset({"train": dataset}, self.folder))


WRITE_AND_TRAIN = """
    import h5py, torch, hetseq

    class Sums(hetseq.Task):
        fields = {"tokens": hetseq.Ragged(torch.int64), "x": hetseq.Field(torch.float32, (2,)),
                  "is_odd": hetseq.Field(torch.bool)}

        def model(self, config):
            return torch.nn.Linear(2, 1)

        def forward(self, model, batch):
            return (model(batch["x"])[:, 0] - batch["tokens"].sum(1)).square().sum()

    if __name__ == "__main__":
        samples = ({"tokens": [1] * (i % 5), "x": [i / 100, 1.0], "is_odd": i % 2 == 1} for i in range(100))
        hetseq.write_shards(samples, "data", rows_per_shard=40)
        hetseq.train(Sums(), data="data", max_epoch=1, batch_size=20, max_sentences=10, save_dir="run")
        hetseq.write_shards({"x": torch.ones(3)}, "more")
        with h5py.File("data/train-00002-of-00003.h5") as file:
            print("values:", file["tokens"][:].sum())
"""


class SameProcessTest(Case):
    """h5py brings an HDF5 of its own, beside the parallel one of the trainer."""

    def test_a_process_writes_shards_trains_on_them_and_writes_again(self):
        self.write("task.py", WRITE_AND_TRAIN)

        printed = self.run_ranks(1, "task.py")

        self.assertIn(" finished: 5 updates", printed)
        self.assertIn(f"values: {sum(i % 5 for i in range(80, 100))}", printed)
        checked = self.hetseq(2, "check", "task.py:Sums", "--data", "data")
        self.assertIn("3 shard(s), 100 samples", checked)
        self.assertRegex(checked, rf"tokens +int64 .* {sum(i % 5 for i in range(100))} ")


class DatasetInBatches:
    """What of `datasets.Dataset` the converter uses, in the form of its NumPy format: lists of unequal rows come as an
    array of objects."""

    def __init__(self, columns):
        self.columns = columns
        self.column_names = list(columns)

    def with_format(self, name):
        assert name == "numpy"
        return self

    def iter(self, batch_size):
        for begin in range(0, len(self.columns["label"]), batch_size):
            batch = {name: values[begin:begin + batch_size] for name, values in self.columns.items()}
            rows = np.empty(len(batch["ids"]), object)
            rows[:] = [np.array(row) for row in batch["ids"]]
            yield {**batch, "ids": rows}


if __name__ == "__main__":
    unittest.main(verbosity=2)
