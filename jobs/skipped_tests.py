#!/usr/bin/env python3
"""Says which tests skipped and why, and which took longest; fails on a skip that this machine does not explain.

usage: jobs/skipped_tests.py JUNIT.xml

Reads what `ctest --output-junit` wrote: entries that skipped as a whole (they print 'SKIPPED: reason'), and
GoogleTest's cases that skipped inside an entry that passed. A case that ran at another rank count of the same
executable (comm/1, comm/2, ...) is tested; any other skip must name something that is absent here.
"""
import collections
import glob
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

Skip = collections.namedtuple("Skip", "entry case reason")

END = re.compile(r"\[ {2,7}(OK|SKIPPED|FAILED) \] ([^\s,]+)[^\n]* \(\d+ ms\)")
COLOUR = re.compile(r"(\x1b|\[NON-XML-CHAR-0x1B\])\[[0-9;]*m")  # as ctest writes it into XML
DISABLED = re.compile(r"YOU HAVE (\d+) DISABLED TEST")


def has_memory_groups():
    """Whether control groups with a limit of memory can be made here."""
    folder = "/sys/fs/cgroup"
    if os.path.exists(f"{folder}/memory/cgroup.procs"):
        return os.access(f"{folder}/memory", os.W_OK)
    if not os.access(folder, os.W_OK) or not os.path.exists(f"{folder}/cgroup.subtree_control"):
        return False
    with open(f"{folder}/cgroup.subtree_control", encoding="utf-8") as controllers:
        return "memory" in controllers.read().split()


def lacks_module(name):
    """Whether the Python of the tests cannot import it."""
    python = "build/python/bin/python"
    return not os.path.exists(python) or subprocess.run([python, "-c", f"import {name}"], check=False,
                                                        stderr=subprocess.DEVNULL).returncode != 0


def absent_here():
    """(what a reason names, whether it is absent on this machine)"""
    data = os.environ.get("HETSEQ_TEST_DATA", "../shared/data")
    modules = [path for pattern in ("/usr/lib/*/modulecmd.tcl", "/usr/share/Modules/libexec/modulecmd.tcl",
                                    "/usr/share/lmod/lmod/libexec/lmod") for path in glob.glob(pattern)]
    modules += [os.environ[name] for name in ("MODULES_CMD", "LMOD_CMD") if name in os.environ]
    python = os.environ.get("HETSEQ_TENSORBOARD_PYTHON", "python3")
    hosts = subprocess.run(["tests/cluster/vcluster", "possible"], check=False).returncode == 0
    return [
        (r"HETSEQ_TEST_DATA", not os.path.isdir(data)),
        (r"\bGPUs?\b|\bCUDA\b", not glob.glob("/dev/nvidia[0-9]*")),
        (r"built without CUDA", True),
        (r"virtual hosts", not hosts),
        (r"no control groups of memory", not has_memory_groups()),
        (r"no build/python", not os.path.exists("build/python/.complete")),
        *((rf"{name} cannot be imported", lacks_module(name)) for name in ("sklearn", "torchmetrics", "wandb")),
        (r"has no tensorboard", subprocess.run([python, "-c", "import tensorboard"], check=False,
                                               stderr=subprocess.DEVNULL).returncode != 0),
        (r"mandoc nor groff", not shutil.which("mandoc") and not shutil.which("groff")),
        (r"Environment Modules nor Lmod", not modules),
        (r"no Slurm here", subprocess.run(["tests/cluster/slurm-box", "possible"], check=False).returncode != 0),
        (r"no Grid Engine here", subprocess.run(["tests/cluster/sge-box", "possible"], check=False).returncode != 0),
    ]


def googletest_cases(output):
    """Yields (case, status, reason) for each case of one executable's output."""
    position = 0
    for end in END.finditer(output):
        text = output[position:end.start()]
        position = end.end()
        reason = text.split("Skipped\n")[-1] if "Skipped\n" in text else text.split("\n", 1)[-1]
        yield end[2], end[1], " ".join(reason.split())
    disabled = DISABLED.search(output)
    if disabled:
        yield "DISABLED_*", "SKIPPED", f"{disabled[1]} disabled in the source"


def read(junit):
    """Returns (counts by status, skips, cases that ran as (executable, case), (seconds, name) of each entry)."""
    counts, skips, ran, times = collections.Counter(), [], set(), []
    for entry in ElementTree.parse(junit).getroot().iter("testcase"):
        name, output = entry.get("name"), COLOUR.sub("", entry.findtext("system-out") or "")
        times.append((float(entry.get("time", 0)), name))
        if entry.find("failure") is not None:
            counts["failed"] += 1
        elif entry.find("skipped") is not None:
            counts["skipped"] += 1
            told = re.findall(r"SKIPPED: (.*)", output)
            skips.append(Skip(name, "", told[-1] if told else "it gives no reason"))
        else:
            counts["passed"] += 1
        for case, status, reason in googletest_cases(output):
            if status == "SKIPPED":
                skips.append(Skip(name, case, reason))
            else:
                ran.add((name.split("/")[0], case))
    return counts, skips, ran, times


def explanation(skip, ran, absent):
    """Why the skip is in order, or None."""
    if (skip.entry.split("/")[0], skip.case) in ran:
        return "ran at another rank count"
    for name, is_absent in absent:
        if is_absent and re.search(name, skip.reason):
            return "expected here"
    return None


def main(junit):
    counts, skips, ran, times = read(junit)
    absent = absent_here()
    groups = collections.defaultdict(list)
    for skip in skips:
        groups[explanation(skip, ran, absent), skip.reason].append(skip)
    unexplained = 0
    print(f"\nSkipped: {len(skips)} (tests, and cases inside tests)")
    for (why, reason), members in sorted(groups.items(), key=lambda item: (item[0][0] is None, item[0])):
        print(f"  {why or 'NOT EXPECTED'}: {len(members)} x '{reason}'")
        if why is None:
            unexplained += len(members)
            for skip in members:
                print(f"      {skip.entry} {skip.case}")
    if unexplained:
        print(f"FAILED: {unexplained} skipped without a reason that holds on this machine.")
    print("\nLongest: " + ", ".join(f"{name} {seconds:.0f} s" for seconds, name in sorted(times, reverse=True)[:10]))
    preset = os.path.basename(os.path.dirname(os.path.abspath(junit)))
    print(f"\n{preset}: {counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if unexplained else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
