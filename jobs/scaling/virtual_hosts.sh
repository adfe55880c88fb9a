# Sourced by the benchmarks on virtual hosts beside it: `task`, `quotas` and `work` are set before virtual_hosts_set_up.
# shellcheck shell=bash disable=SC2154
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
hetseq=build/cpu/bin/hetseq
vcluster=tests/cluster/vcluster
((EUID == 0)) || { echo 'virtual hosts need root' >&2; exit 69; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=1

# The program, the data, and `options` of hetseq train for the task; hosts h1, h2, ... with one rank and a quota each.
virtual_hosts_set_up() {
  local specs=() i
  jobs/setup.sh
  configure_and_build cpu hetseq ragged_model
  case $task in
    mnist)
      prepare_fashion_mnist
      options=(--task mnist --data 'data/fashion-mnist/train*.h5' --max-sentences 128)
      ;;
    bert)
      options=(--task bert --model-config mini --max-sentences 16
        --data "$(realpath -m "${HETSEQ_TEST_DATA:-../shared/data}")/bert/*.hdf5")
      ;;
    translation)
      prepare_multi30k
      options=(--task translation --model-config tiny --dropout 0.3 --data 'data/multi30k/train*.h5' --max-tokens 4096)
      ;;
    gpt2)
      jobs/setup.sh --python
      configure_and_build cpu hetseq_python
      prepare_gpt2
      export PYTHONPATH=$PWD/python HETSEQ_PYTHON=$PWD/build/python/bin/python
      options=("$PWD/inputs/python/gpt2.py:Gpt2" --data 'data/gpt2/train*.h5')
      ;;
    resnet)
      jobs/setup.sh --python
      configure_and_build cpu hetseq_python
      prepare_fashion_mnist
      export PYTHONPATH=$PWD/python HETSEQ_PYTHON=$PWD/build/python/bin/python
      options=("$PWD/inputs/python/gallery/resnet.py:ResNet" --data 'data/fashion-mnist/train*.h5' --max-sentences 64
        --lr-scheduler fixed)
      ;;
  esac
  # Sentences of lognormal lengths, and a small model of them (tests/end_to_end/ragged_model.cpp).
  if [[ $task == pairs ]]; then
    hetseq=build/cpu/bin/ragged_model
    [[ -e data/pairs/shard-00000.h5 ]] || "$hetseq" write data/pairs 60000 4 20 0.6 250
    options=(--task pairs --width 128 --data data/pairs --max-tokens 4096)
  fi
  options+=(--threads 1 --log-interval 1 --cache-dir "$work/cache")
  for i in "${!quotas[@]}"; do specs+=("h$((i + 1)):cpu=${quotas[i]},slots=1"); done
  "$vcluster" down
  trap '"$vcluster" down; rm -rf "$work"' EXIT
  "$vcluster" up "${specs[@]}"
}

# train_on_hosts OPTION...: over all hosts; what it prints only where it fails.
train_on_hosts() {
  "$vcluster" run -np "${#quotas[@]}" -x OMP_NUM_THREADS=1 ${HETSEQ_PYTHON+-x HETSEQ_PYTHON -x PYTHONPATH} "$hetseq" train "${options[@]}" "$@" >"$work/log" 2>&1 ||
    { cat "$work/log" >&2; return 1; }
}

# first_address: of the host that mpirun starts on.
first_address() { "$vcluster" status | awk 'NR == 1 {print $2}'; }

# train_alone HOST OPTION...: on that host only.
train_alone() {
  "$vcluster" exec "$1" "$hetseq" train "${options[@]}" "${@:2}" >"$work/$1.log" 2>&1 ||
    { cat "$work/$1.log" >&2; return 1; }
}

# allowed_by_rates RUN FIRST LAST: samples a second that the ranks' own median rates in these updates allow, without
# communication: perfectly cut (the sum of the rates), and cut as the batches were.
allowed_by_rates() {
  python3 - "$@" <<'PY'
import json, statistics, sys
updates = [line for line in map(json.loads, open(sys.argv[1] + "/metrics.jsonl")) if line["kind"] == "train"]
full = max(line["samples"] for line in updates)
first, last = map(int, sys.argv[2:4])
# A line holds the ranks' times of the update before it.
pairs = [(then["allocation"], now["rank_compute_ms"]) for then, now in zip(updates, updates[1:])
         if then["samples"] == full and now["rank_compute_ms"] and first <= then["update"] <= last]
rates = [statistics.median(1000 * units[r] / ms[r] for units, ms in pairs) for r in range(len(pairs[0][0]))]
cut = statistics.median(max(part / rate for part, rate in zip(units, rates)) for units, _ in pairs)
print(round(sum(rates), 2), round(full / cut, 2))
PY
}

# rate_of RUN [FIRST LAST]: units a second (samples, or target tokens), the median of its updates FIRST to LAST with a full
# batch, by default the last 20 of them.
rate_of() {
  python3 - "$@" <<'PY'
import json, statistics, sys
updates = [line for line in map(json.loads, open(sys.argv[1] + "/metrics.jsonl")) if line["kind"] == "train"]
most = max(line["units"] for line in updates)
first, last = map(int, sys.argv[2:4] or (1, len(updates)))
chosen = [1000 * line["units"] / line["step_ms"] for line in updates
          if line["units"] > most / 2 and first <= line["update"] <= last]
print(round(statistics.median(chosen if sys.argv[2:] else chosen[-20:]), 2))
PY
}
