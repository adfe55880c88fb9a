#!/usr/bin/env bash
# What needs neither mpirun nor a GPU: --version, info, help, and the messages of a wrong call.
source "$(dirname "$0")/common.sh"

"$bin/hetseq" --version | grep -E '^hetseq [0-9]+\.[0-9]+\.[0-9]+' >/dev/null || fail version
"$bin/hetseq" info >"$work/info" || fail info
for word in compiler MPI HDF5 LibTorch CUDA NCCL; do
  grep -q "$word" "$work/info" || { cat "$work/info"; fail "info lacks $word"; }
done
"$bin/hetseq" info --json | python3 -c 'import json, sys; json.load(sys.stdin)' || fail "info --json"
"$bin/hetseq" --help | grep 'mpirun' >/dev/null || fail help
for command in train evaluate check prepare bench plan report info; do
  "$bin/hetseq" "$command" --help | grep "hetseq $command" >/dev/null || fail "$command --help"
done
rc=0; "$bin/hetseq" trian 2>"$work/log" || rc=$?
expect_error 64 "Did you mean train?"
rc=0; "$bin/hetseq" 2>"$work/log" || rc=$?
expect_error 64 "no command was given"
rc=0; "$bin/hetseq" prepare images "$work/none" --output "$work/out" 2>"$work/log" || rc=$?
expect_error 66 "$work/none"
[[ ! -e $work/out ]] || fail "prepare left something behind"
