#!/usr/bin/env python3
"""What the compiler makes of the kernels: registers as written down, nothing in local memory, no called division.

usage: tests/stand_in/kernel_resources_test.py NVCC LIBTORCH_INCLUDE [--write]

Compiles src/*/kernels/*.cu for the architectures of kernel_resources.txt and compares. A change that costs registers must
change that file on purpose: --write does. Registers depend on the compiler, so another nvcc than the file's checks the
rest only.
"""
import glob
import os
import re
import subprocess
import sys
import tempfile

NUMBERS = os.path.join(os.path.dirname(__file__), "kernel_resources.txt")
ARCHITECTURES = (75, 80, 90)
ENTRY = re.compile(r"Compiling entry function '(\w+)'")
MEMORY = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
REGISTERS = re.compile(r"Used (\d+) registers")


def short_name(mangled):
    """`drop<float>` of a kernel's mangled name."""
    name = subprocess.run(["c++filt", mangled], check=True, capture_output=True, text=True).stdout
    name = re.sub(r"^void |hetseq::detail::|c10::|\(.*$", "", name.strip())
    return name


def compile_source(nvcc, include, source, architecture, cubin):
    """Returns {kernel: registers} and a list of faults."""
    command = [nvcc, "-std=c++20", "-O3", "-DNDEBUG", "--expt-relaxed-constexpr", f"-arch=sm_{architecture}", "-cubin",
               "-Xptxas", "-v", "-Iinclude", "-Isrc", "-isystem", include, source, "-o", cubin]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    registers, faults, kernel = {}, [], ""
    for line in (done.stdout + done.stderr).splitlines():
        if entry := ENTRY.search(line):
            kernel = short_name(entry[1])
        elif (memory := MEMORY.search(line)) and any(int(size) for size in memory.groups()):
            faults.append(f"{kernel}, sm_{architecture}: {line.strip()}")
        elif used := REGISTERS.search(line):
            registers[kernel] = int(used[1])
    with open(cubin, "rb") as file:
        if re.search(rb"__cuda_sm\d+_(div|rem)_[su]64", file.read()):
            faults.append(f"{source}, sm_{architecture}: a 64-bit division is called")
    return registers, faults


def main():
    write = "--write" in sys.argv[3:]
    nvcc, include = sys.argv[1:3]
    version = re.search(r"release (\S+),", subprocess.run([nvcc, "--version"], check=True, capture_output=True,
                                                         text=True).stdout)[1]
    lines, faults = [f"nvcc {version}"], []
    with tempfile.TemporaryDirectory() as folder:
        for source in sorted(glob.glob("src/*/kernels/**/*.cu", recursive=True)):
            for architecture in ARCHITECTURES:
                registers, more = compile_source(nvcc, include, source, architecture, os.path.join(folder, "cubin"))
                faults += more
                lines += [f"sm_{architecture} {kernel} {count}" for kernel, count in registers.items()]
    if write:
        with open(NUMBERS, "w", encoding="utf-8") as file:
            file.write("\n".join([lines[0], *sorted(lines[1:])]) + "\n")
    with open(NUMBERS, encoding="utf-8") as file:
        expected = file.read().splitlines()
    if expected[0] == lines[0]:
        faults += [f"{line}: not in {NUMBERS}" for line in sorted(set(lines) - set(expected))]
        faults += [f"{line}: only in {NUMBERS}" for line in sorted(set(expected) - set(lines))]
    else:
        print(f"{lines[0]}: registers are not compared with those of {expected[0]}")
    print("\n".join(faults or [f"{len(lines) - 1} kernels use what is written down, and no local memory"]))
    sys.exit(bool(faults))


main()
