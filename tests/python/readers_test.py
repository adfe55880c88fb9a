"""Processes that make samples: what they are given and give back, in order, and what happens when one dies."""

import os
import signal
import time
import unittest

from harness import need

need("torch", "numpy")

import numpy as np

import hetseq  # noqa: F401  its library, before there are processes
from hetseq.readers import Readers
from hetseq.task import TaskError


def doubled(values, more=None):
    if more == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if more == "fail":
        raise ValueError("no such sample")
    time.sleep(0.001 * (values.size % 3))
    return {"twice": values * 2, "size": values.size, "list": [values[:1], values[1:]]}


class ReadersTest(unittest.TestCase):
    def setUp(self):
        self.readers = Readers(doubled, 2, "'train'")
        self.addCleanup(self.readers.end)

    def check(self, values, made):
        np.testing.assert_array_equal(made["twice"], values * 2)
        np.testing.assert_array_equal(np.concatenate(made["list"]), values)
        self.assertEqual(made["size"], values.size)

    def test_results_are_in_order_and_stay_what_they_were(self):
        given = [np.arange(i % 7, i % 7 + i, dtype=np.int64) for i in range(200)]

        made = list(self.readers.results((values,) for values in given))

        for values, each in zip(given, made):
            self.check(values, each)
            each["twice"] += 1  # they can be written

    def test_values_larger_than_what_is_shared(self):
        for size in (3 << 20, 9 << 20, 1, 5 << 20, 0):
            values = np.arange(size, dtype=np.float32)
            self.check(values, self.readers.result(self.readers.submit(values)))

    def test_several_large_values_at_once_wait_for_nobody(self):
        values = [np.full(9 << 20, i, dtype=np.float32) for i in range(5)]
        texts = [np.array([f"{i:8}" * 9000], dtype=object) for i in range(5)]  # arrays that no memory is shared for
        waiting = [self.readers.submit(each) for each in [*values, *texts]]
        for each, future in zip(values, waiting):
            self.check(each, self.readers.result(future))
        self.assertEqual(self.readers.result(waiting[-1])["twice"][0], texts[-1][0] * 2)

    def test_arrays_that_are_no_block_of_memory(self):
        values = np.arange(40).reshape(8, 5).T[::2].ravel(order="F")[::3]
        self.check(values, self.readers.result(self.readers.submit(values)))

    def test_what_cannot_be_sent_fails_alone(self):
        refused = [self.readers.submit(lambda: None) for _ in range(5)]
        values = np.arange(3)
        good = [self.readers.submit(values) for _ in range(5)]

        for future in refused:
            with self.assertRaises(Exception):
                self.readers.result(future)
        for future in good:
            self.check(values, self.readers.result(future))

    def test_an_exception_there_comes_with_its_traceback_and_the_process_goes_on(self):
        with self.assertRaisesRegex(TaskError, "(?s)doubled.*no such sample"):
            self.readers.result(self.readers.submit(np.arange(1), "fail"))
        self.check(np.arange(2), self.readers.result(self.readers.submit(np.arange(2))))

    def test_what_a_dead_process_was_given_fails_and_nobody_waits_for_it(self):
        futures = [self.readers.submit(np.arange(3), "die" if number == 6 else None) for number in range(12)]

        failed = 0
        for number, future in enumerate(futures):
            try:
                self.check(np.arange(3), self.readers.result(future))
            except TaskError as error:
                self.assertIn("died, ended by signal 9", str(error))
                failed += 1
        self.assertGreater(failed, 0)

    def test_nobody_waits_where_all_died(self):
        futures = [self.readers.submit(np.arange(3), "die") for _ in range(4)]
        for future in [*futures, self.readers.submit(np.arange(3))]:
            with self.assertRaises(TaskError):
                self.readers.result(future)


if __name__ == "__main__":
    unittest.main(verbosity=2)
