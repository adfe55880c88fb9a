#!/usr/bin/env bash
# What needs neither mpirun nor a GPU: --version, info, help, and the messages of a wrong call.
source "$(dirname "$0")/common.sh"

"$bin/hetseq" --version | grep -E '^hetseq [0-9]+\.[0-9]+\.[0-9]+' >/dev/null || fail version
for word in -V version; do
  cmp <("$bin/hetseq" "$word") <("$bin/hetseq" --version) || fail "$word"
done
"$bin/hetseq" info >"$work/info" || fail info
for word in compiler MPI HDF5 LibTorch CUDA NCCL; do
  grep -q "$word" "$work/info" || { cat "$work/info"; fail "info lacks $word"; }
done
"$bin/hetseq" info --json | python3 -c 'import json, sys; json.load(sys.stdin)' || fail "info --json"
"$bin/hetseq" --help | grep 'mpirun' >/dev/null || fail help
for command in train evaluate check checkpoint prepare bench plan report info document; do
  "$bin/hetseq" "$command" --help >"$work/help" || fail "$command --help"
  grep "hetseq $command" "$work/help" >/dev/null || fail "$command --help names no usage"
  cmp "$work/help" <("$bin/hetseq" help "$command") || fail "help $command"
done
"$bin/hetseq" train --help >"$work/help"
for name in mnist-cnn bert-pretraining images adadelta inverse_sqrt; do
  grep -q -- "$name" "$work/help" || fail "train --help does not name $name"
done
! "$bin/hetseq" check --help | grep -e '--lr ' || fail "check --help shows an option that it does not use"
rc=0; "$bin/hetseq" trian 2>"$work/log" || rc=$?
expect_error 64 "Did you mean train?"
rc=0; "$bin/hetseq" 2>"$work/log" || rc=$?
expect_error 64 "no command was given"
rc=0; "$bin/hetseq" prepare images "$work/none" --output "$work/out" 2>"$work/log" || rc=$?
expect_error 66 "$work/none"
[[ ! -e $work/out ]] || fail "prepare left something behind"
grep -q 'IDX files of images' "$work/log" || { cat "$work/log"; fail "prepare does not say what it takes"; }
! grep -e '--data' "$work/log" || fail "prepare has no --data"
rc=0; "$bin/hetseq" prepare images "$work/none" 2>"$work/log" || rc=$?
expect_error 78 "hetseq prepare images IDX... --output DIR [--shards N]"
rc=0; "$bin/hetseq" check --task mnist --lr 1 2>"$work/log" || rc=$?
expect_error 78 "check does not use --lr"
