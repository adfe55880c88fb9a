# Sourced by the scripts of jobs/: the repository's root, what they say, and how they build.
# shellcheck shell=bash
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

say() { printf '\n== %s (after %d s)\n' "$*" "$SECONDS"; }

# usage_only USAGE "$@": prints USAGE for --help, and stops at any argument.
usage_only() {
  local usage=$1; shift
  case "${1-}" in
    "") ;;
    -h | --help) echo "$usage"; exit 0 ;;
    *) echo "unknown argument '$1'; $usage" >&2; exit 64 ;;
  esac
}

# How many cores this process may use. nproc alone would count OMP_NUM_THREADS, which is a rank's.
core_count() { env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc; }

# The CUDA version that the torch of a folder was built with: "13.0".
cuda_of() { sed -nE "s/^cuda.*= '([0-9.]+)'$/\1/p" "$1/torch/version.py"; }

# As many compilers as there are cores, and 2 GB of memory for each.
build_jobs() {
  local cores by_memory
  cores=$(core_count)
  by_memory=$(awk '/MemAvailable/ {print int($2 / 2097152)}' /proc/meminfo)
  echo $((by_memory < 1 ? 1 : by_memory < cores ? by_memory : cores))
}

# configure_and_build PRESET [TARGET...]
configure_and_build() {
  local preset=$1; shift
  mkdir -p build
  cmake --preset "$preset" ${HETSEQ_LIBTORCH_DIR:+"-DHETSEQ_LIBTORCH_DIR=$HETSEQ_LIBTORCH_DIR"} >build/"$preset"-configure.log ||
    { cat build/"$preset"-configure.log; return 1; }
  ninja -C "build/$preset" -j "$(build_jobs)" "$@"
}

# Lets Open MPI start N ranks on this machine, whoever runs it and however few cores it has.
allow_ranks() {
  local cores
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  export OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
  cores=$(lscpu --parse=core 2>/dev/null | grep -v '^#' | sort -u | wc -l) || cores=$(core_count)
  if ((cores < $1)); then
    export OMPI_MCA_hwloc_base_binding_policy=none PRTE_MCA_hwloc_default_binding_policy=none
  fi
}

# run_tests PRESET [CTEST_ARGUMENT...]: the skips are explained after ctest's own lines. A test takes two places, one that
# waits mostly takes one. All tests wait at times: so there are five places a core.
run_tests() {
  local preset=$1 failed=0; shift
  ctest --preset "$preset" -j "$(($(core_count) * 5))" --output-on-failure --no-tests=error \
    --output-junit junit.xml --test-output-size-passed 1000000 "$@" || failed=1
  python3 jobs/skipped_tests.py "build/$preset/junit.xml" | tee "build/$preset/skipped.txt" || failed=1
  return $failed
}

# kill_now_and_then EVERY SECONDS JOB PATTERN: while JOB lives, for SECONDS, kills one of the processes whose command line has
# PATTERN, but for mpirun, after EVERY / 2 to 3 / 2 EVERY seconds each time (0: never). Prints how many.
kill_now_and_then() {
  local every=$1 end=$((SECONDS + $2)) next=0 kills=0 victim
  while ((SECONDS < end)) && kill -0 "$3" 2>/dev/null; do
    ((every == 0 || next)) || next=$((SECONDS + every / 2 + RANDOM % (every + 1)))
    if ((every && SECONDS >= next)); then
      victim=$(pgrep -f -- "$4" | grep -vxFf <(pgrep -x mpirun; echo "$3") | shuf -n 1) || victim=''
      if [[ $victim ]] && kill -9 "$victim" 2>/dev/null; then kills=$((kills + 1)); fi
      next=0
    fi
    sleep 0.2
  done
  echo "$kills"
}

# data/fashion-mnist, from the folder of Fashion-MNIST's four gzip files.
prepare_fashion_mnist() {
  local source=${HETSEQ_FASHION_MNIST:-/usr/share/datasets/fashion-mnist}
  ! compgen -G 'data/fashion-mnist/train*.h5' >/dev/null || return 0
  say 'converting Fashion-MNIST to HDF5'
  compgen -G "$source/*-ubyte.gz" >/dev/null || {
    echo "$source holds no *-ubyte.gz. Take the four files of https://github.com/zalandoresearch/fashion-mnist" >&2
    echo "and name their folder: HETSEQ_FASHION_MNIST=/path/to/folder" >&2
    return 66
  }
  build/cpu/bin/hetseq prepare images "$source"/*-ubyte.gz --output data/fashion-mnist
}

# data/multi30k, from Multi30k's lower-cased and tokenised text in HETSEQ_TEST_DATA/multi30k: 10,000 joint subwords.
prepare_multi30k() {
  local source=${HETSEQ_TEST_DATA:-../shared/data}/multi30k
  ! compgen -G 'data/multi30k/train*.h5' >/dev/null || return 0
  say 'preparing Multi30k'
  [[ -e $source/train.lc.norm.tok.en.gz ]] || {
    echo "$source holds no Multi30k (train.lc.norm.tok.en.gz and the others): set HETSEQ_TEST_DATA" >&2
    return 66
  }
  build/cpu/bin/hetseq prepare translation --vocab-size 10000 --joined --output data/multi30k \
    --source-text "$source/train.lc.norm.tok.en.gz" --target-text "$source/train.lc.norm.tok.de.gz" \
    --valid-source-text "$source/val.lc.norm.tok.en.gz" --valid-target-text "$source/val.lc.norm.tok.de.gz"
}

# $python is the Python of build/python. Ends the script where setup.sh has not made it.
need_built_python() {
  python=$PWD/build/python/bin/python
  [[ -e build/python/.complete ]] || { echo 'there is no build/python: jobs/setup.sh --python makes it' >&2; exit 69; }
}

# For tasks in Python: $hetseq is HETSEQ's program, with its library and $python beside it.
use_hetseq_of_python() {
  local library
  hetseq=$(realpath "${HETSEQ:-build/cpu/bin/hetseq}")
  library=$(dirname "$hetseq")/../lib/libhetseq_python.so
  [[ -x $hetseq && -e $library ]] ||
    { echo "there is no $hetseq with $library: build hetseq and hetseq_python (docs/building.md), or set HETSEQ" >&2; exit 69; }
  need_built_python
  export PYTHONPATH=$PWD/python HETSEQ_PYTHON=$python HETSEQ_PYTHON_LIBRARY=$library HETSEQ_PROGRAM=$hetseq
  export OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
}

# data/gpt2, from the novels of HETSEQ_TEST_DATA/text: rows of 128 ids, by the Python of build/python.
prepare_gpt2() {
  local source=${HETSEQ_TEST_DATA:-../shared/data}/text/novels-small.txt
  ! compgen -G 'data/gpt2/train*.h5' >/dev/null || return 0
  say 'preparing the novels for GPT-2'
  [[ -e $source ]] || { echo "there is no $source: set HETSEQ_TEST_DATA" >&2; return 66; }
  PYTHONPATH=python build/python/bin/python inputs/python/prepare_gpt2.py data/gpt2 "$source"
}

# data/bert-8192, from the novels of HETSEQ_TEST_DATA/text: rows of up to 128 tokens of 8,192 pieces, and the configuration
# of a BERT of 30 million parameters for them (8 layers, 512 wide).
prepare_bert_8192() {
  local source=${HETSEQ_TEST_DATA:-../shared/data}/text/novels-small.txt data=data/bert-8192
  local hetseq=${HETSEQ:-build/cpu/bin/hetseq}
  cat "$data/model.json" >/dev/null 2>&1 && return 0
  say 'preparing the novels for BERT'
  [[ -e $source ]] || { echo "there is no $source: set HETSEQ_TEST_DATA" >&2; return 66; }
  mkdir -p "$data"
  head -c 40000 "$source" >"$data/valid.txt"
  "$hetseq" prepare vocabulary --input "$source" --vocab-size 8192 --output "$data/vocab.txt"
  "$hetseq" prepare bert --input "$source" --valid-input "$data/valid.txt" --vocab "$data/vocab.txt" --dupe-factor 2 \
    --shards 1 --overwrite --output "$data"
  cat >"$data/model.json" <<'JSON'
{"vocab_size": 8192, "hidden_size": 512, "num_hidden_layers": 8, "num_attention_heads": 8, "intermediate_size": 2048,
 "max_position_embeddings": 128, "type_vocab_size": 2, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
 "attention_probs_dropout_prob": 0.1}
JSON
}
