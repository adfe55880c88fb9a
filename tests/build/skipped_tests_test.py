#!/usr/bin/env python3
"""jobs/skipped_tests.py: what it counts as a skip, and which skips it refuses."""
import os
import subprocess
import sys
import tempfile
import unittest

CASE_SKIPPED = "[ RUN      ] {0}\nfile.cpp:1: Skipped\n{1}\n\n[  SKIPPED ] {0} (0 ms)\n"
CASE_PASSED = "[ RUN      ] {0}\n[       OK ] {0} (0 ms)\n"


def entry(name, output, child="", seconds=0):
    return f'<testcase name="{name}" time="{seconds}" status="run">{child}<system-out>{output}</system-out></testcase>'


def report(*entries, **environment):
    """Runs the script on a JUnit file of these entries; returns its exit code and output."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "junit.xml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"<testsuite>{''.join(entries)}</testsuite>")
        run = subprocess.run([sys.executable, "jobs/skipped_tests.py", path], text=True, stdout=subprocess.PIPE,
                             env={**os.environ, **environment}, check=False)
        return run.returncode, run.stdout


class SkippedTests(unittest.TestCase):
    def test_no_skip_passes(self):
        code, text = report(entry("util", CASE_PASSED.format("A.B")))
        self.assertEqual(code, 0)
        self.assertIn("1 passed, 0 failed, 0 skipped", text)

    def test_the_longest_come_first(self):
        text = report(*(entry(f"t{i}", "", seconds=10 * i) for i in range(1, 13)))[1]
        self.assertIn("Longest: t12 120 s, t11 110 s, ", text)
        self.assertIn(", t3 30 s\n", text)

    def test_case_that_ran_at_another_rank_count_is_in_order(self):
        code, text = report(entry("comm/1", CASE_SKIPPED.format("A.B", "one rank waits for nobody")),
                            entry("comm/2", CASE_PASSED.format("A.B")))
        self.assertEqual(code, 0)
        self.assertIn("ran at another rank count: 1 x 'one rank waits for nobody'", text)

    def test_case_skipped_at_every_rank_count_is_refused(self):
        skipped = CASE_SKIPPED.format("A.B", "needs 9 ranks")
        code, text = report(entry("comm/1", skipped), entry("comm/2", skipped))
        self.assertEqual(code, 1)
        self.assertIn("NOT EXPECTED: 2 x 'needs 9 ranks'", text)

    def test_absent_data_explains_a_skip_and_present_data_does_not(self):
        skipped = entry("mnist", "SKIPPED: no MNIST in HETSEQ_TEST_DATA", '<skipped message="77"/>')
        self.assertEqual(report(skipped, HETSEQ_TEST_DATA="/nowhere/at/all")[0], 0)
        self.assertEqual(report(skipped, HETSEQ_TEST_DATA="/")[0], 1)

    def test_entry_that_skips_without_a_reason_is_refused(self):
        code, text = report(entry("mnist", "", '<skipped message="77"/>'))
        self.assertEqual(code, 1)
        self.assertIn("it gives no reason", text)

    def test_disabled_case_is_refused(self):
        code, text = report(entry("util", CASE_PASSED.format("A.B") + "\n  YOU HAVE 1 DISABLED TEST\n"))
        self.assertEqual(code, 1)
        self.assertIn("1 disabled in the source", text)


if __name__ == "__main__":
    unittest.main()
