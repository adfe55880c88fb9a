#!/usr/bin/env bash
# Devices that an earlier start found far below others of their kind are left out, and come back.
source "$(dirname "$0")/common.sh"
images=74
source "$(dirname "$0")/continued_runs.sh"
options+=(--max-epoch 2)

# found RANK SPEED: as if the run's last start had found that of rank RANK of this host.
found() {
  python3 - "$work/run/starts.json" "$1" "$2" <<'PY'
import json, os, sys, time
path, rank, speed = sys.argv[1:]
history = json.load(open(path))
history["starts"][-1]["slow"] = [{"device": f"{os.uname().nodename} cpu {rank}", "speed": float(speed), "seen": time.time()}]
json.dump(history, open(path, "w"))
PY
}
# went_on RANKS: the last start had so many, and the batch is still the same.
went_on() {
  [[ $(python3 -c 'import json,sys; print(len(json.load(open(sys.argv[1]))["ranks"]))' "$work/run/summary.json") == "$1" ]] ||
    fail "the summary does not have $1 ranks"
  grep -q '^batch-size = 4$' "$work/run/config.cfg" || fail "another batch"
}

train whole 1
expect_ok whole
train run 3 --stop-after 5
expect_error 75 "exit code 75 says that the run stopped as planned"
found 1 0.41

# Without the option nothing changes; the next start still knows.
train run 3 --stop-after 2
expect_error 75 "exit code 75 says that the run stopped as planned"
went_on 3

train run 3 --stop-after 4 --drop-below 0.5
expect_error 75 "left out: rank 1 on $(uname -n) (41 %)"
went_on 2

# That start has two ranks, the second of which is the third of its host.
train run 3 --stop-after 4 --drop-below 0.5
expect_error 75 "left out: rank 1 on $(uname -n) (41 %)"
went_on 2

# Two sets of ranks look for a checkpoint to go on from; a damaged one is read, and told, once.
found 2 0.3
newest=$(find "$work/run/checkpoints" -name 'update-*[0-9]' | sort | tail -n 1)
truncate -s -1 "$newest/model.safetensors"
train run 3 --stop-after 4 --drop-below 0.5
expect_error 75 "left out: rank 2 on $(uname -n) (30 %)"
went_on 2
[[ $(grep -c 'cannot be used' "$work/log") == 1 ]] || { cat "$work/log"; fail 'a damaged checkpoint was not told once'; }

# A start that fails lets its ranks that were left out hear of a signal; the next one does not stop for that.
HETSEQ_FAULT='0:computing:*:kill' run_ranks 3 "$bin/hetseq_faulty" train "${options[@]}" --save-dir "$work/run" --drop-below 0.5
((rc == 137)) || { cat "$work/log"; fail "exit code $rc of a rank that is killed"; }
train run 3 --drop-below 0.2
expect_ok "none is left out, and no old file stops it"
went_on 3
"$bin/compare_models" "$work/whole/model.safetensors" "$work/run/model.safetensors" 1e-12 || fail "another result"
