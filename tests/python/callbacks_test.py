"""Callbacks of a run in Python."""

import json
import unittest

from harness import LINEAR, Case, need

need("torch", "numpy", "h5py", "safetensors")

import h5py
import numpy as np

SAMPLES = 24

TASK = LINEAR + """
    class Fails(Linear):
        def on_update(self, info):
            if info["update"] == 3:
                raise ArithmeticError("update 3 is not liked")

    class FailsAtItsEnd(Linear):
        def on_end(self, info):
            raise ArithmeticError("the end is not liked")
"""


class CallbacksTest(Case):
    def setUp(self):
        super().setUp()
        draw = np.random.default_rng(5)
        with h5py.File(self.folder / "data.h5", "w") as file:
            file["x"], file["y"] = draw.normal(size=(SAMPLES, 5)), draw.normal(size=SAMPLES)
        self.write("tasks.py", TASK)

    OPTIONS = dict(data="data.h5", valid_data="data.h5", precision="fp64", optimizer="sgd", lr=0.02, batch_size=12,
                   balance="declared", max_sentences="0=7,1=5")

    def test_each_event_is_told_once_in_order_on_rank_0_before_train_returns(self):
        self.write("script.py", f"""
            import json, threading, time
            import hetseq, tasks

            class Notes:
                def __init__(self):
                    self.told = []
                def on_start(self, info): self.told.append(["start", info])
                def on_update(self, info):
                    time.sleep(0.02)  # the trainer does not wait for it
                    self.told.append(["update", info])
                def on_validation(self, info): self.told.append(["validation", info])
                def on_checkpoint(self, info): self.told.append(["checkpoint", info])
                def on_end(self, info): self.told.append(["end", info, threading.current_thread() is threading.main_thread()])

            class Own(tasks.Linear):
                callbacks = [Notes()]
                def __init__(self):
                    self.own = []
                def on_validation(self, info): self.own.append(info["loss"])

            task, given = Own(), Notes()
            hetseq.train(task, callbacks=[given], max_epoch=2, save_dir="run", **{self.OPTIONS!r})
            if hetseq.rank() == 0:
                assert given.told == task.callbacks[0].told
                json.dump([given.told, task.own], open("told.json", "w"))
            else:
                assert not given.told and not task.own
        """)
        self.run_ranks(2, "script.py")
        told, own = json.loads((self.folder / "told.json").read_text())
        self.assertEqual([kind for kind, *_ in told if kind != "checkpoint"],
                         ["start", "update", "update", "validation", "update", "update", "validation", "end"])
        lines = [json.loads(line) for line in (self.folder / "run/metrics.jsonl").read_text().splitlines()]
        self.assertEqual([info for kind, info, *_ in told if kind == "validation"],
                         [line for line in lines if line["kind"] == "valid"])
        self.assertEqual(own, [info["loss"] for kind, info, *_ in told if kind == "validation"])
        start, end = told[0][1], told[-1][1]
        self.assertEqual((start["options"]["lr"], start["updates"], start["update"], start["ranks"]), ("0.02", 4, 0, 2))
        self.assertTrue(start["run"].endswith("run"))
        updates = [info for kind, info, *_ in told if kind == "update"]
        self.assertEqual([info["update"] for info in updates], [1, 2, 3, 4])
        self.assertEqual(updates[0]["losses"], {"squares": updates[0]["loss"]})
        self.assertEqual((updates[0]["lr"], updates[0]["samples"], updates[0]["allocation"]), (0.02, 12, [7, 5]))
        saved = [info for kind, info, *_ in told if kind == "checkpoint"]
        self.assertEqual((saved[-1]["update"], saved[-1]["path"]), (4, "run/checkpoints/update-00000004"))
        self.assertEqual(end, json.loads((self.folder / "run/summary.json").read_text()))
        self.assertFalse(told[-1][2])  # it ran in a thread

    def test_what_a_callback_throws_ends_the_run_on_all_ranks(self):
        self.write("script.py", f"""
            import hetseq, tasks
            for task in (tasks.Fails, tasks.FailsAtItsEnd):
                try:
                    hetseq.train(task(), max_update=30, **{self.OPTIONS!r})
                except hetseq.Error as error:
                    assert error.code == 78, error.code
                    assert hetseq.rank() > 0 or isinstance(error.__cause__, ArithmeticError), repr(error.__cause__)
                    print(f"{{task.__name__}} is caught\\n", end="", flush=True)  # in one piece: ranks write into each other's lines
            try:
                hetseq.train(tasks.Linear(), callbacks=[print], max_update=1, **{self.OPTIONS!r})
            except hetseq.TaskError as error:
                assert "has none of the methods on_start, on_update" in str(error), error
                print("print is refused", flush=True)
        """)
        told = self.run_ranks(2, "script.py")
        self.assertEqual(told.count("print is refused"), 2, told)
        for name, text in (("Fails", "ArithmeticError: update 3 is not liked"),
                           ("FailsAtItsEnd", "ArithmeticError: the end is not liked")):
            self.assertEqual((told.count(text), told.count(name + " is caught")), (1, 2), told)

    def test_the_command_ends_with_its_traceback(self):
        words = [word for key, value in self.OPTIONS.items() for word in ("--" + key.replace("_", "-"), value)]
        told = self.hetseq(1, "train", "tasks.py:Fails", "--max-update", 30, *words, "--max-sentences", 12, code=78)
        self.assertEqual(told.count("ArithmeticError: update 3 is not liked"), 1, told)


if __name__ == "__main__":
    unittest.main(verbosity=2)
