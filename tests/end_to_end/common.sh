# Sourced by the scripts beside it: $bin holds hetseq and the test tools, $work is a folder of this test's own.
# shellcheck shell=bash
set -euo pipefail
bin=${1:?usage: $0 BINARY_DIR}
HETSEQ_TEST_DATA=${HETSEQ_TEST_DATA:-$(dirname "${BASH_SOURCE[0]}")/../../../shared/data}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_btl_vader_single_copy_mechanism=none
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe

fail() { echo "FAILED: $*" >&2; exit 1; }
skip() { echo "SKIPPED: $*"; exit 77; }

# memory_group MIB: a control group of this test's own, in $group, whose processes have so much memory.
memory_group() {
  local base=/sys/fs/cgroup limit=memory.max
  [[ ! -e $base/memory/cgroup.procs ]] || base+=/memory limit=memory.limit_in_bytes
  group=$base/hetseq-$$
  mkdir -p "$group" 2>/dev/null || return 1
  trap 'rmdir "$group"; rm -rf "$work"' EXIT
  { echo "$1M" >"$group/$limit"; } 2>/dev/null
}

# run_ranks N COMMAND...: under mpirun, everything it prints in $work/log, its exit code in $rc.
run_ranks() {
  local ranks=$1; shift
  rc=0
  timeout 600 mpirun -np "$ranks" "$@" >"$work/output" 2>"$work/errors" || rc=$?
  cat "$work/output" "$work/errors" >"$work/log"  # mpirun passes both on in pieces, which would mix within a line
}
# json_output FILE: the JSON that the last command printed.
json_output() { sed -n '/^{/,/^}/p' "$work/output" >"$1"; }
expect_ok() { ((rc == 0)) || { cat "$work/log"; fail "exit code $rc: $*"; }; }
# expect_error CODE TEXT: the last command ended so, and said so once.
expect_error() {
  ((rc == $1)) || { cat "$work/log"; fail "exit code $rc, expected $1: $2"; }
  (($(grep -cF -- "$2" "$work/log") == 1)) || { cat "$work/log"; fail "expected once: $2"; }
}
# json FILE KEY: the number at a top-level or, with a dot, nested key.
json() { python3 -c 'import json,sys,functools; print(functools.reduce(lambda d, k: d[k], sys.argv[2].split("."), json.load(open(sys.argv[1]))))' "$@"; }
make_images() { make_some_images 600 200; }
# make_some_images SAMPLES VALIDATION_SAMPLES: like MNIST's, in $work/data.
make_some_images() {
  mkdir -p "$work/idx"
  "$bin/make_images" "$work/idx" "$1" "$2"
  "$bin/hetseq" prepare images "$work"/idx/* --output "$work/data" --shards 2 >"$work/log" 2>&1 || { cat "$work/log"; fail prepare; }
}
# make_bert: pairs of sentences in $work/bert, and in $work/small.json the configuration of a small BERT for their vocabulary.
make_bert() {
  awk 'BEGIN { for (i = 1; i <= 400; ++i) print "the cat sat on the mat ." (i % 20 ? "" : "\n") }' >"$work/text.txt"
  printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' the cat sat on mat . >"$work/vocab.txt"
  cat >"$work/small.json" <<'JSON'
{"model_type": "bert", "vocab_size": 11, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
 "intermediate_size": 32, "max_position_embeddings": 64, "type_vocab_size": 2}
JSON
  "$bin/hetseq" prepare bert --input "$work/text.txt" --vocab "$work/vocab.txt" --seq-length 32 --max-predictions 5 \
    --output "$work/bert" >"$work/log" 2>&1 || { cat "$work/log"; fail 'prepare bert'; }
}
make_bert_and_numbers() {
  make_bert
  "$bin/hetseq" prepare numbers --samples 2000 --output "$work/numbers" >"$work/log" 2>&1 ||
    { cat "$work/log"; fail 'prepare numbers'; }
}
