#!/usr/bin/env python3
"""usage: headers_alone_test.py BUILD_DIR LIST_DIR

Compiles every header of LIST_DIR's plain_headers.txt and tensor_headers.txt by itself: it includes what it uses. Those
with tensors come after LibTorch's precompiled header, for which each would take 15 s.
"""
import concurrent.futures
import json
import os
import shlex
import subprocess
import sys
import tempfile

# The compiler stops there: all before it is in order, and the templates of LibTorch are not instantiated once more.
REACHED = "the end of the header"


def compile_command(build, kind):
    """The command of tests/structure/KIND_header.cpp, without its output and the compiler's launcher."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        entry = next(e for e in json.load(file) if e["file"].endswith(f"tests/structure/{kind}_header.cpp"))
    words = shlex.split(entry["command"])
    while "=" in words[0] or os.path.basename(words[0]) in ("cmake", "ccache", "-E", "env"):
        words.pop(0)
    del words[words.index("-o"):words.index("-o") + 2]
    del words[words.index("-c"):words.index("-c") + 2]
    return entry["directory"], [*words, "-fsyntax-only", "-Wfatal-errors", "-x", "c++", "-"]


def complaint(directory, command, header):
    """What is wrong with `header`; empty where nothing is."""
    text = f'#include "{header}"\nstatic_assert(false, "{REACHED}");\n'
    run = subprocess.run(command, cwd=directory, input=text, text=True, stderr=subprocess.PIPE, check=False)
    return "" if REACHED in run.stderr else run.stderr


def notices_a_missing_include(directory, command):
    with tempfile.NamedTemporaryFile("w", suffix=".hpp") as header:
        header.write("#pragma once\ninline std::deque<int> values;\n")
        header.flush()
        return "deque" in complaint(directory, command, header.name)


def main(build, lists):
    checked = failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for kind in ("plain", "tensor"):
            directory, command = compile_command(build, kind)
            if kind == "plain" and not notices_a_missing_include(directory, command):
                sys.exit("FAILED: a header that lacks an include is noticed")
            with open(os.path.join(lists, f"{kind}_headers.txt"), encoding="utf-8") as file:
                headers = file.read().split()
            for text in pool.map(lambda header: complaint(directory, command, header), headers):
                checked += 1
                if text:
                    failed += 1
                    print(text)
    print(f"{checked} headers, {failed} of which do not stand alone")
    return failed > 0 or checked == 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
