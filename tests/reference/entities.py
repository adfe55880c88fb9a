"""Writes entities.json: precision, recall and F1 that seqeval gives sentences of IOB2 tags, by default (lenient) and in
its mode 'strict' with the scheme IOB2.

Needs seqeval. Run again only when the reference itself changes: python3 tests/reference/entities.py
"""

import importlib.metadata
import json
import pathlib
import random
import warnings

from seqeval.metrics import f1_score, precision_score, recall_score
from seqeval.scheme import IOB2

TAGS = ["O", "B-A", "I-A", "B-B", "I-B"]
CHOSEN = [
    (["B-A I-A O B-B"], ["B-A I-A O B-B"]),
    (["B-A I-A O B-B"], ["I-A I-A O I-B"]),
    (["B-A I-A I-A"], ["B-A I-B I-A"]),
    (["B-A B-A", "O B-B"], ["B-A I-A", "I-B B-B"]),
    (["B-A I-A", "I-A O"], ["B-A I-A", "I-A O"]),
    (["O O"], ["B-A O"]),
    (["B-A"], ["O"]),
    (["O"], ["O"]),
]


def drawn(generator):
    """Sentences of any tags, and the same with some of them replaced."""
    expected = [[generator.choice(TAGS) for _ in range(generator.randint(1, 12))] for _ in range(4)]
    predicted = [[tag if generator.random() < 0.7 else generator.choice(TAGS) for tag in tags] for tags in expected]
    return [" ".join(tags) for tags in expected], [" ".join(tags) for tags in predicted]


def scores(expected, predicted, **options):
    texts = [[tags.split() for tags in side] for side in (expected, predicted)]
    return [float(score(*texts, zero_division=0, **options)) for score in (precision_score, recall_score, f1_score)]


def main():
    warnings.simplefilter("ignore")  # of scores without entities
    generator = random.Random(1)
    cases = [{"expected": expected, "predicted": predicted, "lenient": scores(expected, predicted),
              "strict": scores(expected, predicted, mode="strict", scheme=IOB2)}
             for expected, predicted in CHOSEN + [drawn(generator) for _ in range(30)]]
    lines = ",\n  ".join(json.dumps(case) for case in cases)
    pathlib.Path(__file__).with_suffix(".json").write_text(
        f'{{"seqeval": "{importlib.metadata.version("seqeval")}", "tags": {json.dumps(TAGS)},\n "cases": [\n  {lines}]}}\n')


if __name__ == "__main__":
    main()
