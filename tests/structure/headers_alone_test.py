#!/usr/bin/env python3
"""usage: headers_alone_test.py BUILD_DIR LIST_DIR

Every header of LIST_DIR's plain_headers.txt and tensor_headers.txt includes what it uses. Each is compiled by itself,
behind a precompiled header of the standard library, or of LibTorch's for those with tensors: without, one would take
0.4 or 15 s. So the names of the standard library are looked for in the text.
"""
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

# The compiler stops there: all before it is in order, and the templates of LibTorch are not instantiated once more.
REACHED = "the end of the header"

# Which names each header of the standard library is included for.
STANDARD = {
    "algorithm": "clamp copy copy_n count fill_n find_if max max_element min nth_element sort",
    "array": "array",
    "atomic": "atomic",
    "bit": "bit_cast countr_zero rotl",
    "chrono": "chrono",
    "cmath": "abs exp sqrt",
    "condition_variable": "condition_variable",
    "cstdint": "int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t uintmax_t",
    "cstddef": "byte ptrdiff_t",
    "cstring": "memcpy strerror",
    "ctime": "timespec",
    "deque": "deque",
    "exception": "current_exception exception exception_ptr rethrow_exception uncaught_exceptions",
    "filesystem": "filesystem",
    "fstream": "ifstream",
    "functional": "equal_to function hash",
    "future": "future future_status packaged_task promise shared_future",
    "initializer_list": "initializer_list",
    "iosfwd": "istream",
    "iterator": "back_inserter",
    "limits": "numeric_limits",
    "list": "list",
    "map": "map multimap",
    "memory": "enable_shared_from_this make_unique shared_ptr unique_ptr",
    "mutex": "lock_guard mutex unique_lock",
    "new": "align_val_t",
    "numeric": "accumulate",
    "optional": "nullopt optional",
    "set": "set",
    "span": "span",
    "stdexcept": "runtime_error",
    "string": "string to_string u32string",
    "string_view": "string_view u32string_view",
    "thread": "this_thread thread",
    "tuple": "tuple",
    "type_traits": "invoke_result_t is_void_v remove_reference_t type_identity_t",
    "unordered_map": "unordered_map",
    "utility": "declval exchange pair",
    "variant": "variant",
    "vector": "vector",
}
HEADER_OF = {name: header for header, names in STANDARD.items() for name in names.split()}
EVERYWHERE = {"erase", "forward", "move", "size_t", "ssize"}  # every container's header declares them
COMMENT_OR_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"', re.S)


def unnamed(text):
    """What a header's text lacks of the standard library."""
    included = set(re.findall(r"(?m)^#include <([^>]+)>", text))
    used = set(re.findall(r"\bstd::(\w+)", COMMENT_OR_TEXT.sub("", text))) - EVERYWHERE
    for name in sorted(used - HEADER_OF.keys()):
        yield f"std::{name}: name its header in STANDARD (tests/structure/headers_alone_test.py)"
    for name in sorted(used & HEADER_OF.keys()):
        if HEADER_OF[name] not in included:
            yield f"std::{name} needs #include <{HEADER_OF[name]}>"


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
    with open(header, encoding="utf-8") as file:
        lacking = [f"{header}: {text}\n" for text in unnamed(file.read())]
    text = f'#include "{header}"\nstatic_assert(false, "{REACHED}");\n'
    run = subprocess.run(command, cwd=directory, input=text, text=True, stderr=subprocess.PIPE, check=False)
    return "".join(lacking) + ("" if REACHED in run.stderr else run.stderr)


def notices(directory, command, text, word):
    with tempfile.NamedTemporaryFile("w", suffix=".hpp") as header:
        header.write(f"#pragma once\n{text}\n")
        header.flush()
        return word in complaint(directory, command, header.name)


def main(build, lists):
    checked = failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for kind in ("plain", "tensor"):
            directory, command = compile_command(build, kind)
            for text, word in (("inline std::deque<int> values;", "#include <deque>"),
                               ("#include <cstdint>\ninline hetseq::ReduceOp op;", "ReduceOp"),
                               ("inline std::no_such_name value;", "no_such_name")):
                if not notices(directory, command, text, word):
                    sys.exit(f"FAILED: a header of {kind} sources is taken that lacks an include: {text}")
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
