#!/usr/bin/env python3
"""Collects the JSON of measured programs, and prints them side by side.

table.py --append RESULTS NAME   adds the JSON on standard input under "TASK: PROGRAM"
table.py RESULTS                 prints each task's programs, and hetseq's ratio to each, round by round
"""
import collections
import json
import statistics
import sys


def append(path, name):
    result = json.load(sys.stdin)
    key = "units_per_second" if name.startswith("translation") else "samples_per_second"
    measured = result[key]
    print(f"{measured['median']:.1f} {key} ({measured['p10']:.1f} to {measured['p90']:.1f})", file=sys.stderr)
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps({"name": name, "median": measured["median"]}) + "\n")


def spread(values, digits):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def print_table(path):
    tasks = collections.defaultdict(lambda: collections.defaultdict(list))
    with open(path, encoding="utf-8") as file:
        for line in file:
            result = json.loads(line)
            task, program = result["name"].split(": ")
            tasks[task][program].append(result["median"])
    print("| task | program | samples (translation: target tokens) a second: median (range) of the rounds | hetseq is so many times as fast |")
    print("|---|---|---|---|")
    for task, programs in tasks.items():
        for program, medians in programs.items():
            ratios = [ours / theirs for ours, theirs in zip(programs["hetseq"], medians)]
            ratio = "" if program == "hetseq" else spread(ratios, 2)
            print(f"| {task} | {program} | {spread(medians, 1)} | {ratio} |")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--append"] and len(sys.argv) == 4:
        append(*sys.argv[2:])
    elif len(sys.argv) == 2:
        print_table(sys.argv[1])
    else:
        sys.exit(__doc__)
