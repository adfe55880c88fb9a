#!/usr/bin/env bash
# Builds everything and runs the tests; says which were skipped and why, and fails on a skip it did not expect.
set -euo pipefail
source "$(dirname "$0")/common.sh"
usage_only 'usage: jobs/test.sh
environment:
  HETSEQ_TEST_DATA   folder of real data sets (default ../shared/data); tests of it skip where it is absent' "$@"

HETSEQ_TEST_DATA=$(realpath -m "${HETSEQ_TEST_DATA:-../shared/data}")
export HETSEQ_TEST_DATA

jobs/setup.sh
say 'building'
configure_and_build cpu
say 'testing'
run_tests cpu
