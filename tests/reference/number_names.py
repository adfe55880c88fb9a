"""Writes number_names.json: names of numbers in English and German as num2words makes them.

num2words writes commas between English groups, which hetseq leaves out, and "einhunderteinstausend" for 101,000, where
German has "einhunderteintausend".
Needs num2words 0.5.14. Run again only when the reference itself changes: python3 tests/reference/number_names.py
"""

import json
import pathlib
import random

from num2words import num2words


def english(number):
    return num2words(number, lang="en").replace(",", "")


def german(number):
    return num2words(number, lang="de").replace("einstausend", "eintausend")


random.seed(1)
numbers = set(range(0, 131)) | {10**exponent + offset for exponent in range(2, 7) for offset in (-1, 0, 1, 16, 20, 21, 100)}
numbers |= {101_000, 101_001, 121_121, 201_201, 1_001_000, 1_101_101, 2_000_000, 9_999_999}
for digits in range(3, 8):
    numbers |= {random.randrange(10 ** (digits - 1), 10**digits) for _ in range(60)}
rows = [[number, english(number), german(number)] for number in sorted(numbers)]
text = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
pathlib.Path(__file__).with_suffix(".json").write_text(f"[\n{text}\n]\n", encoding="utf-8")
