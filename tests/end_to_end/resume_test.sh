#!/usr/bin/env bash
# A run that is stopped, killed and continued ends as one that was left alone.
source "$(dirname "$0")/common.sh"
images=74
source "$(dirname "$0")/continued_runs.sh"
options+=(--max-epoch 3)

# start RUN RANKS OPTION...: in the background, its launcher in $launcher; slow, so that it is still there when something
# happens to it.
start() {
  local run=$1 ranks=$2; shift 2
  : >"$work/log" # wait_for must not find the last command's words
  HETSEQ_FAULT='0:loading:*:stall=0.04' timeout 200 mpirun -np "$ranks" "$bin/hetseq_faulty" train "${options[@]}" --save-dir "$work/$run" "$@" >"$work/log" 2>&1 &
  launcher=$!
}
# wait_for TEXT: until the log has it.
wait_for() {
  local tries
  for ((tries = 0; tries < 1200; ++tries)); do
    ! grep -q -- "$1" "$work/log" || return 0
    sleep 0.05
  done
  cat "$work/log"; fail "waited in vain for $1"
}
finish() { rc=0; wait "$launcher" || rc=$?; }
ranks_of_launcher() { pgrep -P "$(pgrep -P "$launcher" -x mpirun)" hetseq; }
losses() {
  python3 -c 'import json,sys
print([(x["kind"], x["update"], x["loss"]) for x in map(json.loads, open(sys.argv[1])) if x["kind"] != "event"])' "$1"
}

train whole 2
expect_ok whole

# By a signal, which mpirun and a scheduler may both deliver.
start cut 2
wait_for 'update 5/'
kill -USR1 "$(pgrep -P "$launcher" -x mpirun)"
sleep 0.02
ranks_of_launcher | xargs --no-run-if-empty kill -USR1 || true # they may be gone by now
finish
expect_error 75 "asked to by a signal"
expect_error 75 "exit code 75 says that the run stopped as planned"
[[ $(json "$work/cut/summary.json" status) == stopped ]] || fail "status"
stopped_at=$(json "$work/cut/summary.json" updates)
((stopped_at < 57)) || fail "stopped at the end"

# By the file STOP, which goes with the stop.
start cut 2
wait_for 'continues from'
touch "$work/cut/STOP"
finish
expect_error 75 "asked to by the file STOP"
[[ ! -e $work/cut/STOP ]] || fail "STOP is still there"
stopped_at=$(json "$work/cut/summary.json" updates)

# By kill -9 of a rank, wherever it is; what was being written counts for nothing.
start cut 2 --save-interval-updates 2
wait_for "update $(((stopped_at / 5 + 3) * 5))/"
ranks_of_launcher | tail -1 | xargs kill -9
finish
((rc != 0 && rc != 75)) || fail "exit code $rc of a killed run"
rm -rf "$work/copy"
cp -r "$work/cut" "$work/copy"

# Killed while it replaced its only checkpoint: readers find the former one, who continues gives it its name.
newest=$(find "$work/cut/checkpoints" -maxdepth 1 -name 'update-*[0-9]' | sort | tail -n 1)
held=$(stat -c %i "$newest/MANIFEST.json")
mkdir "$work/others"
find "$work/cut/checkpoints" -mindepth 1 -maxdepth 1 ! -path "$newest" -exec mv -t "$work/others" {} +
aside=$(dirname "$newest")/.replaced-$(basename "$newest")
mv "$newest" "$aside"
"$bin/hetseq" checkpoint verify "$work/cut" >"$work/log" || { cat "$work/log"; fail "not found by a reader"; }

# What continuing would do, and that it leaves everything as it is.
find "$work/cut" -type f -exec cksum {} + | sort >"$work/before"
train cut 2 --dry-run --json
expect_ok "a dry run"
json_output "$work/plan.json"
[[ $(json "$work/plan.json" action) == continue ]] || fail "the plan does not continue"
[[ $(json "$work/plan.json" checkpoint) == "$aside" ]] || { cat "$work/plan.json"; fail "the plan names no checkpoint"; }
[[ $(json "$work/plan.json" updates) == 57 ]] || fail "the plan's updates"
python3 - "$work/plan.json" <<'EOF' || { cat "$work/plan.json"; fail "rate, time or memory of the plan"; }
import json, sys
plan = json.load(open(sys.argv[1]))
left = plan["updates"] - plan["updates_done"]
assert 0 < plan["updates_done"] < 57 and 0 < plan["tried_updates"] <= left
assert plan["samples_per_second"] > 0 and plan["seconds"] == left * plan["step_ms"]["median"] / 1000
assert [r["share"] for r in plan["ranks"]] == [2, 2] and all(0 < r["peak_memory_mb"] < r["memory_mb"] for r in plan["ranks"])
EOF
grep -q "would continue from $aside.* of 57)" "$work/log" || { cat "$work/log"; fail "it does not say from where"; }
find "$work/cut" -type f -exec cksum {} + | sort | cmp - "$work/before" || fail "a dry run wrote"

# It stops before its first update: nothing is written again.
touch "$work/cut/STOP"
train cut 2
expect_error 75 "asked to by the file STOP"
grep -q "continues from $newest," "$work/log" || { cat "$work/log"; fail "did not continue from the former checkpoint"; }
[[ ! -e $aside && $(stat -c %i "$newest/MANIFEST.json") == "$held" ]] || fail "was not put back"
[[ $(find "$work/cut/checkpoints" -name 'update-*[0-9]') == "$newest" ]] || fail "did not stop before its first update"
find "$work/others" -mindepth 1 -maxdepth 1 -exec mv -t "$work/cut/checkpoints" {} +

train cut 2
expect_ok continued
grep -q 'continues from .*update-' "$work/log" || fail "did not continue"
cmp "$work/cut/model.safetensors" "$work/whole/model.safetensors" || fail "the continued run differs"
cmp "$work/cut/best.safetensors" "$work/whole/best.safetensors" || fail "its best model differs"
[[ $(losses "$work/cut/metrics.jsonl") == "$(losses "$work/whole/metrics.jsonl")" ]] || fail "its losses differ"
for file in model.safetensors optimizer-00001-of-00001.safetensors; do
  cmp "$work"/{cut,whole}/checkpoints/update-00000057/"$file" || fail "equal states have unequal bytes"
done

train cut 1 --dry-run --json
expect_ok "a dry run of a finished run"
json_output "$work/plan.json"
[[ $(json "$work/plan.json" action) == nothing ]] || fail "the plan of a finished run"

# On other ranks: the same but for rounding; the batch stays what it was.
train copy 3
expect_ok "on three ranks"
"$bin/compare_models" "$work/copy/model.safetensors" "$work/whole/model.safetensors" 1e-12 || fail "three ranks differ"
[[ $(json "$work/copy/summary.json" samples) == 222 ]] || fail "samples"

# The newest is damaged: named, and the one before it taken.
truncate -s -1 "$work/cut/checkpoints/update-00000057/model.safetensors"
train cut 2
expect_ok "after damage"
grep -q 'update-00000057 cannot be used: .*model.safetensors has' "$work/log" || { cat "$work/log"; fail "damage is not named"; }
grep -q 'continues from .*update-00000038' "$work/log" || fail "the one before is not taken"
cmp "$work/cut/model.safetensors" "$work/whole/model.safetensors" || fail "differs after damage"
truncate -s -1 "$work"/cut/checkpoints/*/state.json
train cut 1
expect_error 65 "none of the 3 checkpoints can be used"

# At a signal that asks for a checkpoint it saves and goes on; what the ranks cost is kept with it.
start saved 2 --max-epoch 1000 --balance auto --cache-dir none --save-interval 0 --save-minutes 0 --stop-signals USR1 \
  --checkpoint-signals USR2
wait_for 'update 5/'
kill -USR2 "$(pgrep -P "$launcher" -x mpirun)"
for ((tries = 0; tries < 400; ++tries)); do
  ! compgen -G "$work/saved/checkpoints/update-*" >/dev/null || break
  sleep 0.05
done
((tries < 400)) || { cat "$work/log"; fail "no checkpoint at the signal"; }
kill -USR1 "$(pgrep -P "$launcher" -x mpirun)"
finish
expect_error 75 "asked to by a signal"
train saved 2 --max-epoch 1000 --balance auto --cache-dir none --stop-after 1
expect_error 75 "asked to by --stop-after"
! grep -q 'measuring the speed' "$work/log" || fail "measured what the checkpoint knew"

# By the clock alone: a start that knows from earlier ones what a checkpoint costs saves every 2 s. The two newest stay.
mkdir "$work/timed"
cat >"$work/timed/starts.json" <<'EOF'
{"starts": [{"began": 1, "seen": 61, "ended": null, "ranks": 2, "first_update": 0, "updates": 0, "starting_s": 1,
  "updating_s": 0, "validating_s": 0, "saving_s": 0, "checkpoint": {"training_s": 0.001, "writing_s": 0.01}}]}
EOF
timed=(--max-epoch 1000 --save-interval 0 --save-minutes auto --keep-last 0)
saved() { find "$work/timed/checkpoints" -maxdepth 1 -name 'update-*' 2>/dev/null | sort || true; } # one may just go
start timed 2 "${timed[@]}"
for ((tries = 0, times = 0; tries < 2400 && times < 4; ++tries)); do
  sleep 0.05
  now=$(saved | tail -n 1)
  [[ $now == "${before-}" ]] || times=$((times + 1))
  before=$now
done
read -r victim < <(ranks_of_launcher)
kill -9 "$victim"
finish
((times == 4)) || { cat "$work/log"; fail 'no checkpoints by the clock'; }
(($(saved | wc -l) <= 3)) || { saved; fail 'checkpoints by the clock are not removed'; } # one that was just named
train timed 2 "${timed[@]}" --stop-after 1
((rc == 75)) || { cat "$work/log"; fail "exit code $rc after --stop-after"; }
grep -q 'continues from' "$work/log" || { cat "$work/log"; fail 'began anew'; }
grep -q 'over 3 starts, 2 of which failed' "$work/log" || { cat "$work/log"; fail 'no goodput'; }
[[ $(json "$work/timed/summary.json" goodput.failures) == 2 ]] || fail 'failures of the goodput'
