#!/usr/bin/env bash
# The commands that look at checkpoints, and a run that is tried for some updates first.
source "$(dirname "$0")/common.sh"
images=74
source "$(dirname "$0")/continued_runs.sh"

train whole 1
expect_ok whole

# Looked at.
"$bin/hetseq" checkpoint list "$work/whole" >"$work/log"
grep -q 'update-00000076 *4 .*best' "$work/log" || { cat "$work/log"; fail list; }
(($(grep -c best "$work/log") == 1)) || { cat "$work/log"; fail "several are the best"; }
"$bin/hetseq" checkpoint list "$work/whole" --json >"$work/log"
grep -q '"valid_loss": [0-9]' "$work/log" || { cat "$work/log"; fail "no validation loss in the list"; }
"$bin/hetseq" checkpoint verify "$work/whole" >"$work/log" || fail verify
cp -r "$work/whole" "$work/damaged"
truncate -s -1 "$work/damaged/checkpoints/update-00000076/model.safetensors"
rc=0; "$bin/hetseq" checkpoint verify "$work/damaged" >"$work/log" || rc=$?
((rc == 65)) || fail "damage passed the verification"
"$bin/hetseq" checkpoint inspect "$work/whole" >"$work/log" || fail inspect
grep -q 'square_avg/' "$work/log" || fail "no tensor of the optimizer"
"$bin/hetseq" checkpoint average "$work/whole" --last 1 --output "$work/mean.safetensors" >"$work/log" || fail average
"$bin/compare_models" "$work/mean.safetensors" "$work/whole/model.safetensors" 0 || fail "the mean of one"
rc=0; "$bin/hetseq" checkpoint average "$work/whole" --output "$work/mean.safetensors" 2>"$work/log" || rc=$?
((rc == 78)) || fail "a file was replaced without --overwrite, exit code $rc"
"$bin/hetseq" checkpoint average "$work/whole" --output "$work/mean.safetensors" --overwrite >"$work/log" || fail average
rc=0; "$bin/compare_models" "$work/mean.safetensors" "$work/whole/model.safetensors" 0 || rc=$?
((rc == 1)) || fail "the mean of three, exit code $rc"
# A byte of another value, which only the checksum shows.
python3 - "$work/whole/checkpoints/update-00000076/model.safetensors" "$work/damaged/checkpoints/update-00000076/model.safetensors" <<'PY'
import sys
data = bytearray(open(sys.argv[1], "rb").read())
data[-1] ^= 1
open(sys.argv[2], "wb").write(data)
PY
rc=0; "$bin/hetseq" checkpoint average "$work/damaged" --output "$work/wrong.safetensors" 2>"$work/log" || rc=$?
if ((rc != 65)) || ! grep -q model.safetensors "$work/log"; then cat "$work/log"; fail "the mean of a damaged checkpoint, exit code $rc"; fi
[[ ! -e $work/wrong.safetensors ]] || fail 'the mean of a damaged checkpoint was written'
run_ranks 1 "$bin/hetseq" evaluate "$work/damaged" --checkpoint last --data "$work/data/t10k*.h5"
expect_error 65 'update-00000076/model.safetensors'

# A trial of a run for some updates: its schedule stays, and the continued run is the undisturbed one.
trial=("$bin/hetseq" train --task mnist --precision fp64 --data "$work/data/train*.h5" --max-sentences 2 --max-update 12
  --lr-scheduler cosine --warmup-updates 8)
run_ranks 1 "${trial[@]}" --save-dir "$work/undisturbed"
expect_ok undisturbed
run_ranks 1 "${trial[@]}" --save-dir "$work/tried" --stop-after 5
expect_error 75 "asked to by --stop-after"
expect_error 75 "checkpoint: $work/tried/checkpoints/update-00000005; the same command continues the run"
run_ranks 1 "${trial[@]}" --save-dir "$work/tried"
expect_ok "after the trial"
tail -n 1 "$work/log" | grep -q "model: $work/tried/model.safetensors$" || { cat "$work/log"; fail "the last line names no model"; }
"$bin/compare_models" "$work/tried/model.safetensors" "$work/undisturbed/model.safetensors" 0 || fail "the trial changed the run"

# A rank whose memory has no room for the copies that checkpoints are written from writes the same files without them.
with_memory() { (echo "$BASHPID" >"$group/cgroup.procs" && exec "$@"); }
run_ranks 1 "${trial[@]}" --dry-run --json
expect_ok 'a dry run'
json_output "$work/dry.json"
needed=$(python3 -c 'import json, sys; print(round(sum(json.load(open(sys.argv[1]))["ranks"][0]["memory"].values())))' "$work/dry.json")
mib=$((needed * 10 / 9 + 40)) # copies take 27
lent=impossible
while memory_group "$mib"; do
  lent=no
  with_memory "${trial[@]}" --save-dir "$work/short" --overwrite --save-interval-updates 3 --keep-last 0 >"$work/log" 2>&1 ||
    { cat "$work/log"; fail "$mib MiB"; }
  ! grep 'no memory is left for copies on rank 0: ' "$work/log" || { lent=yes; break; }
  mib=$((mib - 8))
done
if [[ $lent != impossible ]]; then
  [[ $lent == yes ]] || fail "no limit down to $mib MiB left the copies out"
  echo "without copies in $mib MiB"
  same_checkpoints undisturbed short
  for update in 3 6 9; do
    "$bin/hetseq" checkpoint verify "$work/short/checkpoints/update-0000000$update" >"$work/log" || { cat "$work/log"; fail "update $update"; }
  done
else
  echo 'no control groups here: checkpoints without copies were left out'
fi
