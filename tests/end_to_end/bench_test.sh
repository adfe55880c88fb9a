#!/usr/bin/env bash
# hetseq bench prints JSON with the keys that scripts read, and leaves nothing behind.
source "$(dirname "$0")/common.sh"
make_images
cd "$work"

# expect_keys KEY...: the last command's standard output is one JSON object with exactly these keys.
expect_keys() {
  python3 - "$work/out.json" "$@" <<'PY' || { cat "$work/out.json"; fail "keys"; }
import json, sys
found = json.load(open(sys.argv[1]))
assert list(found) == sys.argv[2:], list(found)
for value in found.values():
    if isinstance(value, dict):
        assert list(value) == ["median", "p10", "p90"], value
        assert 0 <= value["p10"] <= value["median"] <= value["p90"], value
PY
}
# run_bench N WORDS...: standard output alone in out.json.
run_bench() {
  local ranks=$1; shift
  rc=0
  timeout 300 mpirun -np "$ranks" "$bin/${program-hetseq}" bench "$@" >"$work/out.json" 2>"$work/log" || rc=$?
}

run_bench 2 data --task mnist --data "$work/data/train*.h5"
expect_ok data
keys=(bench ranks batch_size batch_tokens samples bytes blocks open_s read_per_second_and_rank cached_per_second_and_rank
  read_cpu_s cached_cpu_s)
expect_keys "${keys[@]}"
[[ $(json out.json bench) == data && $(json out.json ranks) == 2 && $(json out.json samples) == 600 ]] || fail "values of data"
(($(json out.json bytes) == 600 * (28 * 28 + 1))) || fail "bytes of data"
[[ $(json out.json batch_size) == 128 ]] || fail "data of MNIST are read in batches of 64 a rank, as its task trains"

# Samples of unequal length, some of them longer than a micro-batch may be by default.
"$bin/ragged_model" write "$work/pairs" 200 2 400 1 6000
bench_pairs() { program=ragged_model run_bench 2 data --task pairs --data "$work/pairs" "$@"; }
bench_pairs
expect_error 65 'samples are longer than 4096'
bench_pairs --max-tokens 8000
expect_ok 'long samples'
expect_keys "${keys[@]}"
(($(json out.json samples) == 200 && $(json out.json batch_tokens) == 14400)) || fail "values of long samples"
bench_pairs --max-length 2000 --skip-too-long --batch-size 16 --max-sentences 4
expect_ok 'long samples left out'
(($(json out.json samples) < 200 && $(json out.json batch_size) == 16)) || fail "values of shorter samples"

run_bench 2 step --task mnist --data "$work/data/train*.h5" --max-sentences 8 --max-update 10
expect_ok step
expect_keys bench task ranks threads precision recomputed_layers reduce_precision batch_size batch_tokens updates samples_per_second units_per_second padding step_ms data_ms \
  compute_ms wait_ms reduce_ms optimizer_ms finish_wait_over_last_bucket startup_s
[[ $(json out.json batch_size) == 16 && $(json out.json updates) == 10 ]] || fail "values of step"
[[ $(json out.json recomputed_layers) == '[0, 0]' ]] || fail "MNIST's model has no layers to compute again"

make_bert
run_bench 2 step --task bert --model-config "$work/small.json" --data "$work/bert/train*.h5" --max-sentences 2 --max-update 2 \
  --recompute 0=none,1=2
expect_ok 'step that recomputes'
[[ $(json out.json recomputed_layers) == '[0, 2]' ]] || fail "layers that each rank recomputes"
rm -r "$work/bert" "$work/small.json" "$work/text.txt" "$work/vocab.txt"

run_bench 2 reduce --device cpu
expect_ok reduce
expect_keys bench ranks sizes
python3 - out.json <<'PY' || { cat out.json; fail "sizes"; }
import json, sys
for size in json.load(open(sys.argv[1]))["sizes"]:
    assert list(size) == ["bytes", "repeats", "own_ms", "mpi_allreduce_ms", "mpi_allreduce_over_own", "algorithm_gb_s",
                          "bus_gb_s"], size
    assert size["own_ms"]["median"] > 0 and size["mpi_allreduce_ms"]["median"] > 0, size
PY

run_bench 1 reduce --device cpu
expect_error 78 "there is one rank (a reduction takes at least two): start it with mpirun -np N hetseq bench reduce"

bench_bound() { run_bench 1 roofline --task mnist --data "$work/data/train*.h5" --max-sentences 16 "$@"; }
bench_bound
expect_ok 'all GPUs'
python3 - out.json <<'PY' || { cat out.json; fail "bounds"; }
import json, sys
found = json.load(open(sys.argv[1]))
assert list(found) == ["bench", "note", "task", "precision", "samples", "units", "micro_batches", "numbers_read",
                       "forward_backward", "update", "largest", "launch_us", "devices"], list(found)
assert found["samples"] == 16 and found["micro_batches"] == 1
# Two convolutions and two layers, forward and both gradients; images need no gradient.
forward = 2 * 16 * (26 * 26 * 32 * 9 + 24 * 24 * 64 * 32 * 9 + 9216 * 128 + 128 * 10)
assert abs(found["forward_backward"]["gflop"] * 1e9 - (3 * forward - 2 * 16 * 26 * 26 * 32 * 9)) < 1, found
devices = found["devices"]
assert list(devices) == ["h100", "a100", "v100", "p100"]
for device in devices.values():
    assert device["forward_backward_ms"] == max(device["device_ms"], device["launch_ms"]) > 0, device
    assert max(device["compute_ms"], device["memory_ms"]) <= device["device_ms"] * (1 + 1e-9), device
assert devices["h100"]["device_ms"] < devices["p100"]["device_ms"]
PY
bench_bound --device v100 --precision fp16
expect_ok 'one GPU, products in 16 bits'
[[ $(json out.json cost.micro_batch) == 16 ]] || fail "the cost of one GPU"
[[ $(json out.json devices.v100.tflops) == 125.0 ]] || fail "the peak in fp16"
bench_bound --precision bf16
expect_ok 'GPUs that have bf16'
[[ $(python3 -c 'import json; print(*json.load(open("out.json"))["devices"])') == 'h100 a100' ]] || fail "GPUs in bf16"
bench_bound --device p100 --precision bf16
expect_error 78 'the device does not compute in it'
bench_bound --precision v100=fp16,0-9=fp32
expect_error 78 'operators are counted in one precision'
bench_bound --device gtx
expect_error 78 "'gtx' is not one of h100, a100, v100, p100"
run_bench 2 roofline --task mnist --data "$work/data/train*.h5"
expect_error 78 '2 ranks were started'
program=ragged_model run_bench 1 roofline --task pairs --data "$work/pairs" --device v100 \
  --max-length 2000 --skip-too-long --batch-size 16 --max-sentences 4
expect_ok 'samples of unequal length'

run_ranks 1 "$bin/hetseq" bench stpe --task mnist --data "$work/data"
expect_error 64 "Did you mean step?"
run_ranks 1 "$bin/hetseq" bench
expect_error 64 "hetseq bench needs one of data, step, reduce, roofline"
run_ranks 1 "$bin/hetseq" bench data --task mnist
expect_error 78 "no data were given"
rm -r "$work/pairs"
[[ $(ls) == $'data\nerrors\nidx\nlog\nout.json\noutput' ]] || { ls; fail "something was left behind"; }
