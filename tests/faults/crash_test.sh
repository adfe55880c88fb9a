#!/usr/bin/env bash
# A rank that is killed or crashes, at any moment, a checkpoint's writing included, ends the job in seconds; the same
# command then continues from the newest checkpoint to the parameters of an undisturbed run.
source "$(dirname "$0")/common.sh"
train+=(--save-interval-updates 2 --balance equal --precision fp64)

run_ranks 3 "${train[@]}" --save-dir "$work/undisturbed"
expect_ok 'undisturbed'

# continues RUN NAME: to its end, and the end is that of the undisturbed run.
continues() {
  run_ranks 3 "${train[@]}" --save-dir "$1"
  expect_ok "$2, continued"
  "$bin/compare_models" "$work/undisturbed/model.safetensors" "$1/model.safetensors" 0 || fail "$2: other parameters"
}
# newest RUN: the update of its newest checkpoint.
newest() { find "$1/checkpoints" -maxdepth 1 -name 'update-*' | sort | tail -n 1 | sed 's/.*update-0*//'; }

for fault in starting:0 loading:5 agreeing:5 computing:5 reducing:5 optimizing:5 validating:6 saving:6 ending:12; do
  run=$work/kill-${fault%:*}
  run_faulty 3 "1:$fault:kill" "${train[@]}" --save-dir "$run"
  ((rc == 137)) || { cat "$work/log"; fail "exit code $rc, expected 137 (SIGKILL): $fault"; }
  grep -q 'rank 1 .*signal 9' "$work/log" || { cat "$work/log"; fail "$fault: the rank is not named"; }
  table "SIGKILL, ${fault%:*}"
  continues "$run" "$fault"
done

# Rank 0 writes the model and gives checkpoints their name, the others write parts of the optimizer's state.
for fault in 0:checkpoint_copy:6 0:checkpoint_write:6 0:file:6+ 0:checkpoint_commit:6 1:checkpoint_write:6; do
  run=$work/kill-${fault//[:+]/-}
  run_faulty 3 "$fault:kill" "${train[@]}" --save-dir "$run"
  ((rc == 137)) || { cat "$work/log"; fail "exit code $rc, expected 137 (SIGKILL): $fault"; }
  # While update 6 is at work that of update 4 may still be written.
  [[ $(newest "$run") == [24] ]] || fail "$fault: the newest checkpoint is of update $(newest "$run")"
  table "SIGKILL, ${fault%:*}"
  continues "$run" "$fault"
  ! grep -q 'cannot be used' "$work/log" || { cat "$work/log"; fail "$fault: half a checkpoint bears a name"; }
done

# The loader works ahead, in a thread of its own, so it may not be at work during each update.
for fault in computing:5 reduce_thread:5 loader_thread:5+ checkpoint_write:6; do
  run=$work/segv-${fault%:*}
  run_faulty 3 "1:$fault:segv" "${train[@]}" --save-dir "$run"
  ((rc == 139)) || { cat "$work/log"; fail "exit code $rc, expected 139 (SIGSEGV): $fault"; }
  expect_count 1 '^error: the program was ended by SIGSEGV'
  expect_count 1 '^  hetseq .*, rank 1 of 3 on .*, update ([3-9]|1[0-2])$'
  table "SIGSEGV, ${fault%:*}"
  continues "$run" "$fault"
done

run_faulty 3 1:computing:5:exit "${train[@]}" --save-dir "$work/exit"
((rc != 0)) || { cat "$work/log"; fail 'exit code 0 after a rank left'; }
table 'leaves without a word'
continues "$work/exit" 'leaves without a word'

# A rank that the kernel kills for want of memory says nothing itself; the lowest other rank of its host does.
if [[ -e /sys/fs/cgroup/memory/cgroup.procs ]]; then
  group=/sys/fs/cgroup/memory/hetseq-$$ limit=memory.limit_in_bytes
else
  group=/sys/fs/cgroup/hetseq-$$ limit=memory.max
fi
if mkdir "$group" 2>/dev/null && echo 64M >"$group/$limit"; then
  trap 'rmdir "$group"; rm -rf "$work"' EXIT
  # shellcheck disable=SC2016 # the rank's shell expands it
  run_faulty 3 '1:computing:5:sh=echo $PPID >'"$group/cgroup.procs,1:computing:5:memory=300000000" "${train[@]}" --save-dir "$work/memory"
  ((rc == 137)) || { cat "$work/log"; fail "exit code $rc, expected 137 (SIGKILL): memory"; }
  expect_count 1 'error \[rank 0 on .*\] rank 1 on .* is gone, most likely killed for want of memory'
  table 'killed for memory'
else
  echo 'no control groups here: the rank that is killed for memory was left out'
fi
