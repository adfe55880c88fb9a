# Sourced by tests of whole runs over the stand-ins.
# shellcheck shell=bash disable=SC2154  # bin, work and options are the test's

# train RUN RANKS OPTION...
train() {
  local run=$1 ranks=$2; shift 2
  run_ranks "$ranks" ${launcher:+"$launcher"} "$bin/hetseq_stand_in" train "${options[@]}" --save-dir "$work/$run" "$@"
  expect_ok "$run"
  ! grep -i misuse "$work/log" || fail "$run: CUDA or NCCL was misused"
  ! grep -E '^\[W' "$work/log" || fail "$run: LibTorch warns"
}
# same RUN [OF]: its parameters are those of one CPU.
same() { "$bin/compare_models" "$work/${2:-cpu}/model.safetensors" "$work/$1/model.safetensors" 1e-12 || fail "$1 differs"; }
says() { grep -q -- "$1" "$work/log" || { cat "$work/log"; fail "not said: $1"; }; }
