#!/usr/bin/env bash
# NVIDIA's BERT shards as they are: checked against their known sums, and a tiny model learns from them on two ranks.
source "$(dirname "$0")/common.sh"
shards=$HETSEQ_TEST_DATA/bert
[[ -d $shards ]] || skip "no BERT shards in HETSEQ_TEST_DATA ($HETSEQ_TEST_DATA)"

run_ranks 3 "$bin/hetseq" check --task bert --data "$shards" --json
expect_ok check
json_output "$work/check.json"
python3 - "$work/check.json" "$shards/expected.json" <<'PY' || fail "sums differ"
import json, sys
found, expected = (json.load(open(path)) for path in sys.argv[1:])
for name, field in found["fields"].items():
    assert field["sum"] == sum(shard[name]["sum"] for shard in expected.values()), name
assert found["samples"] == sum(shard["input_ids"]["shape"][0] for shard in expected.values())
PY

run_ranks 2 "$bin/hetseq" train --task bert --model-config tiny --data "$shards" --max-sentences 4 --max-update 30 \
  --lr 0.001 --lr-scheduler fixed --log-interval 1 --threads 1 --save-dir "$work/run"
expect_ok train
# What it leaves is a model that describes itself. Shorter rows are enough to see that.
make_bert
run_ranks 2 "$bin/hetseq" evaluate "$work/run" --data "$work/bert/train*.h5"
expect_ok evaluate
run_ranks 1 "$bin/hetseq" train --task bert --init-model "$work/run/model.safetensors" --data "$shards" --max-sentences 2 --max-update 1 \
  --dry-run
expect_ok 'start from the file'
python3 - "$work/run/metrics.jsonl" <<'PY' || fail "the loss did not fall"
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
losses = [line["loss"] for line in lines if line["kind"] == "train"]
assert len(losses) == 30
# ln 30522 + ln 2 = 11.02 at the start
assert abs(losses[0] - 11.02) < 0.3, losses[0]
assert sum(losses[-5:]) / 5 < losses[0] - 1.5, losses[-5:]
PY
