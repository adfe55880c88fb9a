"""Metrics of scikit-learn and torchmetrics over all predictions."""

import unittest

from harness import need

need("torch", "numpy", "h5py", "safetensors")
need("sklearn", "torchmetrics", how="pip install scikit-learn torchmetrics")

from metric_test import RanksCase


class OutsideMetricsTest(RanksCase):
    def test_functions_and_objects_of_others_agree(self):
        self.write("others.py", """
            import hetseq
            from ranks import Ranks
            from sklearn.metrics import roc_auc_score
            from torchmetrics.classification import BinaryAUROC

            class Others(Ranks):
                metrics = [*Ranks.metrics, hetseq.Computed("sklearn_auc"), hetseq.Computed("torchmetrics_auc")]
                area = BinaryAUROC()
                def metric(self, predictions):
                    self.area.reset()
                    self.area.update(predictions["score"], predictions["y"])
                    return {**super().metric(predictions), "torchmetrics_auc": self.area.compute(),
                            "sklearn_auc": roc_auc_score(predictions["y"], predictions["score"])}
        """)
        self.train(2, "run", "--max-sentences", 7, task="others.py:Others")
        lines = self.validations("run")
        self.assertEqual(len(lines), 3)
        for line in lines:
            self.assertAlmostEqual(line["auc"], line["sklearn_auc"], delta=1e-12)
            self.assertAlmostEqual(line["auc"], line["torchmetrics_auc"], delta=1e-6)  # in fp32


if __name__ == "__main__":
    unittest.main(verbosity=2)
