#!/usr/bin/env bash
# usage: tests/python/run_test.sh BUILD_DIR TEST.py
# Runs one test in the environment of jobs/setup.sh --python, with the package of the sources and the library of
# BUILD_DIR.
set -euo pipefail
build=$(realpath "${1:?usage: run_test.sh BUILD_DIR TEST.py}")
if [[ ! -e build/python/.complete ]]; then
  echo 'SKIPPED: there is no build/python (jobs/setup.sh --python makes it)'
  exit 77
fi
# hetseq's bytecode is written once. The processes of a test write none: a task's file may change twice within a second,
# and Python would take the first one's bytecode for the second.
build/python/bin/python -m compileall -q python/hetseq || true
export PYTHONPATH=$PWD/python${PYTHONPATH:+:$PYTHONPATH} HETSEQ_PYTHON_LIBRARY=$build/lib/libhetseq_python.so
export HETSEQ_PROGRAM=$build/bin/hetseq PYTHONDONTWRITEBYTECODE=1
PATH=$PWD/build/python/bin:$PATH exec build/python/bin/python "$2"
