"""Metrics that are computed from the predictions of a whole validation."""

import json
import re
import unittest

from harness import Case, capacities, need

need("torch", "numpy", "h5py", "safetensors")

import h5py
import numpy as np
import torch

import hetseq
from hetseq.gathered import Kept, metric_values
from hetseq.padding import padded_rows
from hetseq.results import rows_of

TRAINED, VALIDATED = 40, 61

TASK = """
    import torch, hetseq
    from torch.nn import functional as F

    def ranked(scores, labels):
        \"\"\"The share of pairs of a positive and a negative that are in order: the area under the curve.\"\"\"
        pairs = scores[labels == 1][:, None] - scores[labels == 0][None]
        return ((pairs > 0).double() + 0.5 * (pairs == 0)).mean()

    class Ranks(hetseq.Task):
        fields = {"x": hetseq.Field(torch.float64, (5,)), "y": hetseq.Field(torch.int64, is_target=True),
                  "words": hetseq.Ragged(torch.int64, is_target=True)}
        losses, metrics = ["nll"], ["accuracy", hetseq.Computed("auc"), hetseq.Computed("order", is_share=True)]

        def model(self, config):
            return torch.nn.Linear(5, 1)

        def scores(self, model, batch):
            return model(batch["x"].to(model.weight.dtype)).squeeze(1)

        def forward(self, model, batch):
            scores = self.scores(model, batch)
            sums = {"nll": F.binary_cross_entropy_with_logits(scores, batch["y"].to(scores.dtype), reduction="sum")}
            if not model.training:
                sums["accuracy"] = ((scores > 0) == batch["y"]).sum()
            return sums

        def predict(self, model, batch):
            scores = self.scores(model, batch)
            return {"score": scores, "above": [row[row > 0] for row in batch["x"]]}

        def metric(self, predictions):
            scores, labels, x = predictions["score"], predictions["y"], predictions["above"]
            assert scores.shape == labels.shape == (len(predictions["words"]),) and not scores.requires_grad
            # Row i of the data has i % 4 words that are i; and its label.
            order = sum(words.tolist() == [i] * (i % 4) and len(x[i]) <= 5 for i, words in enumerate(predictions["words"]))
            return {"order": order / len(scores), "auc": ranked(scores, labels)}
"""


def write_data(path, samples, seed):
    draw = np.random.default_rng(seed)
    with h5py.File(path, "w") as file:
        file["x"] = draw.normal(size=(samples, 5))
        file["y"] = (file["x"][:, 0] + draw.normal(size=samples) > 0).astype(np.int64)
        file["words"] = np.repeat(np.arange(samples), np.arange(samples) % 4)
        file["words_offsets"] = np.concatenate([[0], np.cumsum(np.arange(samples) % 4)])


class RanksCase(Case):
    def setUp(self):
        super().setUp()
        write_data(self.folder / "train.h5", TRAINED, 1)
        write_data(self.folder / "valid.h5", VALIDATED, 2)
        self.write("ranks.py", TASK)

    def train(self, ranks, run, *words, task="ranks.py:Ranks", code=0):
        return self.hetseq(ranks, "train", task, "--data", "train.h5", "--valid-data", "valid.h5", "--precision", "fp64",
                           "--optimizer", "sgd", "--lr", 0.5, "--batch-size", 20, "--max-epoch", 3, "--balance", "declared",
                           "--save-dir", run, *words, code=code)

    def validations(self, run):
        lines = [json.loads(line) for line in (self.folder / run / "metrics.jsonl").read_text().splitlines()]
        return [line for line in lines if line["kind"] == "valid"]


class MetricTest(RanksCase):
    def test_any_cut_gives_the_same_values_which_choose_the_best_model(self):
        words = ("--best-by", "auc:max", "--patience", 5)
        told = self.train(1, "one", *words, "--max-sentences", 20)
        self.assertRegex(told, r"auc 0\.\d+  order 100(\.0*)? ?%")
        self.train(2, "two", *words, "--max-sentences", capacities(7, 3))
        values = [[line["auc"] for line in self.validations(run)] for run in ("one", "two")]
        self.assertEqual(len(values[0]), 3)
        for one, two in zip(*values):
            self.assertAlmostEqual(one, two, delta=1e-12)
        self.assertEqual([line["order"] for line in self.validations("two")], [1, 1, 1])
        self.assertEqual(self.validations("two")[0]["best_by"], "auc:max")
        summary = json.loads((self.folder / "two" / "summary.json").read_text())
        self.assertAlmostEqual(summary["valid"]["best"]["auc"],
                               max(values[1]), delta=1e-12)
        told = json.loads(re.search(r"(?s)^{.*^}", self.hetseq(1, "evaluate", "two", "--data", "valid.h5", "--json"), re.M)[0])
        self.assertAlmostEqual(told["auc"], max(values[1]), delta=1e-6)  # the weights pass through fp32
        self.assertEqual(told["order"], 1)

    def test_what_metric_gives_must_be_declared_and_declared_ones_given(self):
        self.write("wrong.py", """
            import hetseq
            from ranks import Ranks

            class Lacks(Ranks):
                def metric(self, predictions):
                    return {"auc": 1.0}
            class Surplus(Ranks):
                def metric(self, predictions):
                    return {"auc": 1.0, "order": 1.0, "f1": 1.0}
            class Raises(Ranks):
                def metric(self, predictions):
                    raise KeyError("nobody has it")
            class NoMetric(Ranks):
                metric = hetseq.Task.metric
            class Undeclared(Ranks):
                metrics = ["accuracy"]
            class LeavesOut(Ranks):
                def collate(self, batch):
                    return {"x": batch["x"], "y": batch["y"]}

            for task in (Lacks, Surplus, Raises, NoMetric, Undeclared, LeavesOut):
                task.self_test = False  # so that the validation finds it
                try:
                    hetseq.train(task(), data="train.h5", valid_data="valid.h5", max_update=1, batch_size=20, max_sentences=10)
                except hetseq.Error as error:
                    if hetseq.rank() == 1:
                        print(f"refused: {error.code} {task.__name__}: {' '.join(str(error).split())}", flush=True)
        """)
        told = self.run_ranks(2, "wrong.py")
        for name, expected in (("Lacks", "metric gave no 'order', only 'auc'"),
                               ("Surplus", "metric gave 'f1', which metrics does not declare"),
                               ("Raises", "KeyError: 'nobody has it'"),
                               ("NoMetric", "the task has no method metric"),
                               ("Undeclared", "declares no metric that it gives"),
                               ("LeavesOut", "collate leaves out 'words'")):
            with self.subTest(name):
                self.assertRegex(told, f"refused: 78 {name}: .*{expected}")

    def test_mistakes_in_predict_show_before_the_first_update(self):
        self.write("early.py", """
            import sys, hetseq, torch
            from ranks import Ranks

            class Raises(Ranks):
                def predict(self, model, batch):
                    return {"score": batch["z"]}
            class Rows(Ranks):
                def predict(self, model, batch):
                    return {"score": batch["x"][:3]}
            class Clean(Ranks):
                def metric(self, predictions):  # its first call is that of the first validation
                    assert len(predictions["y"]) == %d
                    return super().metric(predictions)

            options = dict(data="train.h5", max_epoch=2, batch_size=20, max_sentences=10, log_interval=1)
            if sys.argv[1:]:
                hetseq.train(globals()[sys.argv[1]](), valid_data="valid.h5", **options)
            else:
                hetseq.train(Clean(), valid_data="valid.h5", **options)
                hetseq.train(Raises(), **options)  # nothing is validated
        """ % VALIDATED)
        for task, expected in (("Raises", "KeyError: 'z'"), ("Rows", "predict gave 3 rows for 'score' of 10 samples")):
            told = self.run_ranks(1, "early.py", task, code=78)
            self.assertIn(expected, told)
            self.assertNotIn("update 1/4", told)
        self.assertEqual(self.run_ranks(2, "early.py").count("update 4/4"), 2)

    def test_a_task_of_functions_and_a_metric_that_is_never_a_number(self):
        told = self.run_ranks(2, self.write("functions.py", """
            import hetseq, torch
            from ranks import Ranks
            ranks = Ranks()

            def metric(predictions):
                return {"auc": float("nan"), "order": ranks.metric(predictions)["order"]}

            task = hetseq.task(ranks.model(None), Ranks.fields, ranks.forward, losses=["nll"], metrics=Ranks.metrics,
                               predict=ranks.predict, metric=metric)
            hetseq.train(task, data="train.h5", valid_data="valid.h5", max_epoch=1, batch_size=20, max_sentences=10,
                         best_by="auc:max", patience=3, save_dir="functions")
        """))
        self.assertEqual([line["order"] for line in self.validations("functions")], [1])
        self.assertEqual(told.count("auc is nan: by --best-by auc:max this validation is not the best"), 1, told)


class GivenTest(unittest.TestCase):
    def test_lists_of_predictions_may_differ_in_their_first_dimension_alone(self):
        for rows in ([torch.zeros(1, 2), torch.zeros(1, 3)], [torch.tensor(1), torch.tensor(2)]):
            with self.assertRaisesRegex(hetseq.TaskError, r"of the shapes .* for 'mask': .* first dimension alone"):
                rows_of("mask", rows)
        values, lengths = rows_of("mask", [torch.zeros(0, 2), torch.ones(3, 2)])
        self.assertEqual((tuple(values.shape), lengths.tolist()), ((3, 2), [0, 3]))

    def test_what_is_no_function_is_refused(self):
        with self.assertRaisesRegex(hetseq.TaskError, "was given a int as predict"):
            hetseq.task(torch.nn.Linear(1, 1), {}, loss=lambda model, batch: 0, predict=5)


class KeptTest(unittest.TestCase):
    """What a rank keeps for a metric."""

    def test_targets_of_unequal_shapes_come_back_as_they_were(self):
        class Shaped(hetseq.Task):
            fields = {"mask": hetseq.Ragged(torch.uint8, (None, 2, None), is_target=True, padding=9),
                      "turned": hetseq.Ragged(torch.float32, (2, None), is_target=True)}
            metrics = [hetseq.Computed("f")]

        draw = torch.Generator().manual_seed(1)
        rows = {"mask": [torch.randint(0, 5, (i % 3, 2, i % 4), dtype=torch.uint8, generator=draw) for i in range(7)],
                "turned": [torch.rand(2, i, generator=draw) for i in range(7)]}
        parts = []
        for ids in ([4, 0, 6], [2, 5, 1, 3]):
            kept, batch = Kept(Shaped()), {}
            for name, field in Shaped.fields.items():
                batch.update(padded_rows(name, field, [rows[name][i] for i in ids]))
            kept.add({"found": (torch.tensor(ids), torch.empty(0))}, torch.tensor(ids), batch)
            parts.append(kept.take())

        class Looks(Shaped):
            def metric(self, predictions):
                self.seen = predictions
                return {"f": 1}

        task = Looks()
        metric_values(task, parts)

        self.assertEqual(task.seen["found"].tolist(), list(range(7)))
        for name, expected in rows.items():
            for one, other in zip(expected, task.seen[name], strict=True):
                self.assertTrue(torch.equal(one, other), name)

    def test_a_collate_that_leaves_out_the_shapes_is_told_so(self):
        class Shaped(hetseq.Task):
            fields = {"mask": hetseq.Ragged(torch.uint8, (None, None), is_target=True)}
            metrics = [hetseq.Computed("f")]

        with self.assertRaisesRegex(hetseq.TaskError, "leaves out 'mask'.*with 'mask_shape'"):
            Kept(Shaped()).add({}, torch.arange(2), {"mask": torch.zeros(2, 1, 1)})


if __name__ == "__main__":
    unittest.main(verbosity=2)
