"""Streams that are read while the training runs: what an epoch's samples are, the same parameters on any ranks and after a
restart, and what is refused."""

import unittest

from harness import Case, environment, largest_difference, need

need("torch", "numpy", "h5py", "safetensors")

import collections
import itertools
import json
import subprocess
import sys
import textwrap
import threading
from unittest import mock

import torch

import hetseq
from hetseq import streams

LENGTH, BUFFER, BATCH = 250, 96, 32

TASK = f"""
    import itertools, os, random, signal, time
    import numpy
    import torch, hetseq
    from torch import nn

    LENGTH, BUFFER, BATCH = {LENGTH}, {BUFFER}, {BATCH}

    class Numbers(torch.utils.data.IterableDataset):
        # Each pass draws by all means that a stream may use.
        passes = 0
        def __init__(self, length=LENGTH):
            self.length = length
        def set_epoch(self, number):
            self.passes = number
        def __iter__(self):
            for i in range(self.length):
                noise = random.random() + numpy.random.rand() + torch.rand(3, dtype=torch.float64)
                yield {{"x": noise, "number": i + 1000 * self.passes}}

    class Even(torch.utils.data.IterableDataset):  # draws nothing, and can begin anywhere
        def __init__(self, begin=0, length=LENGTH):
            self.begin, self.length = begin, length
        def skip(self, count):
            if int(os.environ.get("PMIX_RANK", "0")) == 0:
                print(f"skips {{count}}", flush=True)
            return Even(self.begin + count, self.length)
        def __iter__(self):
            return iter(self.rows())
        def rows(self):
            return [{{"x": [i / 250, 1.0, i % 7], "number": i}} for i in range(self.begin, self.length)]

    class Broken(Numbers):
        def __init__(self, how):
            super().__init__()
            self.how = how
        def __iter__(self):
            for number, sample in enumerate(super().__iter__()):
                if number != 77:
                    yield sample
                elif self.how == "shape":
                    yield dict(sample, x=sample["x"][:2])
                elif self.how == "death":
                    time.sleep(4)  # all ranks ask it by then
                    os._exit(9)
                elif self.how == "exit":
                    raise SystemExit("that is all")
                elif self.how == "term":
                    os.killpg(0, signal.SIGTERM)
                    yield sample
                elif self.how == "workers":
                    assert len(list(torch.utils.data.DataLoader(range(8), num_workers=2))) == 8
                    yield sample
                else:
                    raise OSError("the connection is gone")

    class Fit(hetseq.Task):
        fields = {{"x": hetseq.Field(torch.float64, (3,)), "number": hetseq.Field(torch.int64)}}
        losses = ["squares"]
        defaults = {{"precision": "fp64", "optimizer": "sgd", "lr": 0.01, "device": "cpu", "save-minutes": 0,
                    "cache-data": "off", "shuffle-buffer": BUFFER}}
        def model(self, config):
            return nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.2), nn.Linear(4, 1))
        def transform(self, sample, training):
            return {{"x": sample["x"] + (torch.rand(3, dtype=torch.float64) if training else 0), "number": sample["number"]}}
        def forward(self, model, batch):
            x, number = batch["x"].to(next(model.parameters()).dtype), batch["number"] % 1000
            return (model(x).squeeze(1) - number / LENGTH).square().sum()

    class Streamed(Fit):
        options = {{"kind": hetseq.Option("Numbers", changeable=True)}}
        def dataset(self, config, split):
            return Even(length=40) if split == "valid" else globals()[config.kind]()
"""

SCRIPT = """
    import os, time, task, hetseq, torch

    SETTINGS = dict(max_sentences=8, batch_size=task.BATCH, threads=1, balance="equal", cache_dir="cache", max_update=9)

    def train(name, data=None, kind=task.Fit, **options):
        if data is not None:
            options["data"] = data
        return hetseq.train(kind(), save_dir=f"{name}-{os.environ.get('OMPI_COMM_WORLD_SIZE', '1')}", **{**SETTINGS, **options})
"""


class StreamTest(Case):
    def setUp(self):
        super().setUp()
        self.write("task.py", TASK)

    def script(self, ranks, text, **how):
        body = textwrap.indent(textwrap.dedent(text), "    ")
        self.write("script.py", textwrap.dedent(SCRIPT) + "\nif __name__ == '__main__':\n" + body)
        return self.run_ranks(ranks, "script.py", **how)

    def command(self, name, *words, ranks=1, code=0, updates=14):
        return self.hetseq(ranks, "train", "task.py:Streamed", "--save-dir", name, "--max-update", updates, "--max-sentences", "8",
                           "--batch-size", BATCH, "--threads", "1", "--balance", "equal", "--cache-dir", "cache", *words, code=code)

    def near(self, a, b):
        self.assertLess(largest_difference(self.folder / a / "model.safetensors", self.folder / b / "model.safetensors"), 1e-12, (a, b))

    def test_an_epoch_is_a_buffer_of_the_stream(self):
        self.write("seen.py", """
            import task, hetseq, torch

            class Seen(task.Fit):
                seen = []
                def collate(self, batch):
                    self.seen.append((tuple(hetseq.sample_ids(batch).tolist()), tuple(batch["number"].tolist())))
                    return batch

            if __name__ == "__main__":
                hetseq.train(Seen(), data=task.Numbers(), batch_size=task.BATCH, max_sentences=task.BATCH, max_epoch=4, cache_dir="cache")
                batches = [seen for seen in dict.fromkeys(Seen.seen) if len(seen[0]) == task.BATCH]  # some are measured besides
                assert len(batches) == 12, len(batches)
                for epoch in range(4):
                    ids = sum((ids for ids, _ in batches[3 * epoch:3 * epoch + 3]), ())
                    numbers = sum((numbers for _, numbers in batches[3 * epoch:3 * epoch + 3]), ())
                    places = range(epoch * task.BUFFER, (epoch + 1) * task.BUFFER)
                    expected = [place % task.LENGTH + 1000 * (place // task.LENGTH) for place in places]
                    assert sorted(numbers) == expected, (epoch, sorted(numbers))
                    assert list(numbers) != expected
                    assert tuple(expected[i] for i in ids) == numbers
            """)
        self.run_ranks(1, "seen.py")

    def test_parameters_do_not_depend_on_ranks_and_hosts(self):
        for ranks in (1, 3):
            self.script(ranks, """
                train("shared", task.Numbers())
                os.environ.pop("PMIX_NAMESPACE", None)  # as if each rank were on a host of its own
                train("own", task.Numbers(), data_workers=2)
                train("short", task.Even(length=72), valid_data=task.Even())
                train("list", task.Even(length=72).rows(), valid_data=task.Even().rows()[:task.BUFFER])
                """)
            for one, other in (("shared", "own"), ("short", "list")):
                one, other = ((self.folder / f"{name}-{ranks}" / "model.safetensors").read_bytes() for name in (one, other))
                self.assertEqual(one == other, True)
            self.assertEqual(*(self.losses(f"{name}-{ranks}") for name in ("short", "list")))
        self.near("shared-1", "shared-3")
        self.near("short-1", "short-3")

    def losses(self, name):
        lines = map(json.loads, (self.folder / name / "metrics.jsonl").read_text().splitlines())
        found = [(line["loss"], line["samples"]) for line in lines if line["kind"] == "valid"]
        self.assertEqual([samples for _, samples in found], [BUFFER] * 3)
        return found

    def test_a_killed_run_goes_on_in_the_middle_of_the_stream(self):
        for kind in ("Numbers", "Even"):
            words = ("--kind", kind, "--valid-data", "valid")
            self.command(f"whole-{kind}", *words)
            self.command(f"parts-{kind}", *words, "--save-interval", "4", ranks=3, updates=8)
            text = self.command(f"parts-{kind}", *words, ranks=2)
            self.near(f"whole-{kind}", f"parts-{kind}")
            self.assertEqual(f"skips {2 * BUFFER}" in text, kind == "Even", text)
        self.assertIn("sample 0 of 'train' is ", self.command("parts-Numbers", "--kind", "Even", updates=20, code=78))
        told = self.command("parts-Numbers", "--kind", "Numbers", "--shuffle-buffer", "100", updates=20, code=78)
        self.assertIn("--data is not what", told)

    def test_a_slow_stream_and_one_with_processes_of_its_own(self):
        told = self.script(2, """
            class Slow(task.Numbers):
                def __iter__(self):
                    for number, sample in enumerate(super().__iter__()):
                        if number >= 10:
                            time.sleep(2)
                        yield sample

            train("slow", Slow(), shuffle_buffer=10, batch_size=10, max_update=2, stall_timeout=15)
            train("workers", task.Broken("workers"), max_update=3)
            """)
        self.assertIn("'train' is a stream, read in buffers of 10 samples", told)

    def test_a_stop_that_comes_to_all_processes_ends_the_update_and_saves(self):
        self.write("stopped.py", textwrap.dedent(SCRIPT) + textwrap.dedent("""
            if __name__ == "__main__":
                train("stopped", task.Broken("term"), shuffle_buffer=76, max_update=100)
            """))
        run = subprocess.run([sys.executable, "stopped.py"], cwd=self.folder, env=environment(), start_new_session=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=240)
        self.assertEqual(run.returncode, 75, run.stdout)
        self.assertTrue(list((self.folder / "stopped-1/checkpoints").iterdir()), run.stdout)

    def test_what_a_stream_cannot_give_is_said(self):
        self.script(2, """
            def expect(words, data, kind=task.Fit, **options):
                try:
                    train("bad", data, kind, overwrite=True, **options)
                except hetseq.Error as error:
                    for word in words:
                        assert word in str(error), (word, str(error))
                else:
                    raise AssertionError(words)

            class Texts(task.Fit):
                fields = {"x": hetseq.Ragged(torch.int64)}

            expect(["'train' gave no sample"], task.Numbers(0))
            expect(["sample 77 of 'train' (Broken), field 'x', has the shape (2,)"], task.Broken("shape"))
            expect(["sample 77 of 'train' (Broken) cannot be made", "OSError", "the connection is gone", "task.py"], task.Broken("error"))
            expect(["sample 77 of 'train' (Broken) cannot be made", "SystemExit: that is all"], task.Broken("exit"))
            expect(["the process that reads 'train' died", "--shuffle-buffer"], task.Broken("death"))
            expect(["fields of unequal length"], task.Numbers(), Texts)
            expect(["--shuffle-buffer 0"], task.Numbers(), shuffle_buffer=0)
            expect(["MiB of memory", "a smaller --shuffle-buffer than 1,000,000,000"], task.Numbers(), shuffle_buffer=10**9)
            expect(["--cache-data on", "or off"], task.Even().rows(), valid_data=task.Numbers(), cache_data="auto")
            """)
        text = self.script(1, "train('once', (row for row in task.Even().rows()))", code=78)
        self.assertIn("'train' ended after 250 samples, and a generator can be iterated once", text)


class BuffersTest(unittest.TestCase):
    """Of a stream 0, 1, 2, ..."""

    def buffers(self, dataset, size=10, behind=20):
        self.converted = []

        def convert(sample, place):
            self.converted.append(sample)
            return {"x": torch.tensor(sample).numpy()}

        patch = mock.patch.object(streams, "_BEHIND", behind)
        patch.start()
        self.addCleanup(patch.stop)
        buffers = streams._Buffers(streams._Passes(dataset, 1, "'train'"), size, convert, "'train'")
        threading.Thread(target=buffers.fill, daemon=True).start()
        return buffers

    def numbers(self, *arguments):
        return [int(row["x"]) for row in arguments[0].rows(*arguments[1:])]

    def test_buffers_are_kept_for_ranks_that_ask_late(self):
        buffers = self.buffers(range(1000))
        for number in range(6):
            self.assertEqual(self.numbers(buffers, number, [7, 0], False), [10 * number + 7, 10 * number])
        self.assertEqual(self.numbers(buffers, 3, [1], False), [31])
        self.assertEqual(self.converted, list(range(60)))
        self.assertEqual(self.numbers(buffers, 0, [1], False), [1])  # was dropped: the stream begins anew
        self.assertEqual(self.converted[60:], list(range(10)))
        self.assertEqual(self.numbers(buffers, 6, [1], False), [61])

    def test_the_next_buffer_is_read_ahead(self):
        buffers = self.buffers(range(1000))
        self.numbers(buffers, 0, [0], True)
        for _ in range(100):
            if len(self.converted) == 20:
                break
            threading.Event().wait(0.1)
        self.assertEqual(self.converted, list(range(20)))

    def test_two_that_ask_far_apart_are_both_answered(self):
        buffers = self.buffers(range(1000))
        answers = {}
        threads = [threading.Thread(target=lambda number=number: answers.update({number: self.numbers(buffers, number, [9], True)}))
                   for number in (40, 0, 7, 40, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        self.assertEqual(answers, {number: [10 * number + 9] for number in (0, 1, 7, 40)})

    def test_passes_follow_each_other(self):
        buffers = self.buffers(range(25))
        self.assertEqual(self.numbers(buffers, 2, range(10), False), [20, 21, 22, 23, 24, 0, 1, 2, 3, 4])
        self.assertEqual(buffers.state().length, 10)
        self.assertEqual(self.numbers(buffers, 12, range(10), False), [(120 + i) % 25 for i in range(10)])

    def test_a_stream_that_is_shorter_than_a_buffer(self):
        buffers = self.buffers(range(4))
        self.assertEqual(self.numbers(buffers, 3, range(4), False), [0, 1, 2, 3])
        self.assertEqual(buffers.state().length, 4)

    def test_skip_behind_the_end_counts_the_samples(self):
        class Short(list):
            def skip(self, count):
                return self[count:]

        buffers = self.buffers(Short(range(25)))
        self.numbers(buffers, 0, [0], False)
        self.assertEqual(self.numbers(buffers, 4, range(10), False), [(40 + i) % 25 for i in range(10)])

    def test_skipped_samples_are_not_made(self):
        made = []

        class Long:
            def __init__(self, begin=0):
                self.begin = begin

            def skip(self, count):
                return Long(self.begin + count)

            def __iter__(self):
                for number in itertools.count(self.begin):
                    made.append(number)
                    yield number

        buffers = self.buffers(Long())
        self.numbers(buffers, 0, [0], False)
        self.assertEqual(self.numbers(buffers, 500, [3], False), [5003])
        self.assertEqual(collections.Counter(made), collections.Counter([*range(10), *range(5000, 5010)]))


if __name__ == "__main__":
    unittest.main()
