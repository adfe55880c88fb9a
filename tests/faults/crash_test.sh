#!/usr/bin/env bash
# A rank that is killed or crashes, at any moment, a checkpoint's writing included, ends the job in seconds; the same
# command then continues from the newest checkpoint to the parameters of an undisturbed run.
updates=50
source "$(dirname "$0")/common.sh"
train+=(--save-interval-updates 2 --balance equal --precision fp64)

run_ranks 3 "${train[@]}" --save-dir "$work/undisturbed" --keep-last 0
expect_ok 'undisturbed'

# One run, which each fault ends and the next start continues, to the next fault at a later update.
run=$work/run
# newest: the update of its newest checkpoint.
newest() { find "$run/checkpoints" -maxdepth 1 -name 'update-*' | sort | tail -n 1 | sed 's/.*update-0*//'; }
# ends_at FAULT CODE NAME: the fault ends it with this code, and its newest checkpoint is the undisturbed run's.
ends_at() {
  run_faulty 3 "$1" "${train[@]}" --save-dir "$run"
  if [[ $2 == any ]]; then ((rc != 0)); else ((rc == $2)); fi || { cat "$work/log"; fail "exit code $rc, expected $2: $1"; }
  ! grep -q 'cannot be used' "$work/log" || { cat "$work/log"; fail "before $1: half a checkpoint bears a name"; }
  table "$3"
  [[ $(newest) ]] || return 0
  local checkpoint
  checkpoint=checkpoints/update-$(printf %08d "$(newest)")/model.safetensors
  "$bin/compare_models" "$work/undisturbed/$checkpoint" "$run/$checkpoint" 0 || fail "before $1: other parameters"
}

for fault in starting:0 loading:3 agreeing:5 computing:7 reducing:9 optimizing:11 validating:12 saving:14; do
  ends_at "1:$fault:kill" 137 "SIGKILL, ${fault%:*}"
  grep -q 'rank 1 .*signal 9' "$work/log" || { cat "$work/log"; fail "$fault: the rank is not named"; }
done
[[ $(newest) ]] || fail 'no checkpoint after eight faults'

# Rank 0 writes the model and gives checkpoints their name, the others write parts of the optimizer's state.
for fault in 0:checkpoint_copy:16 0:checkpoint_write:18 0:file:20+ 0:checkpoint_commit:22 1:checkpoint_write:24; do
  ends_at "$fault:kill" 137 "SIGKILL, ${fault%:*}"
  # While an update is at work the checkpoint of the one before may still be written.
  update=${fault##*:}; update=${update%+}
  [[ $(newest) == $((update - 2)) || $(newest) == $((update - 4)) ]] ||
    { cat "$work/log"; fail "$fault: the newest checkpoint is of update $(newest)"; }
done

# The loader works ahead, in a thread of its own, so it may not be at work during each update.
for fault in computing:27 reduce_thread:29 loader_thread:31+ checkpoint_write:34; do
  ends_at "1:$fault:segv" 139 "SIGSEGV, ${fault%:*}"
  expect_count 1 '^error: the program was ended by SIGSEGV'
  expect_count 1 '^  hetseq .*, rank 1 of 3 on .*, update (2[5-9]|3[0-9])$'
done

ends_at 1:computing:37:exit any 'leaves without a word'

# A rank that the kernel kills for want of memory says nothing itself; the lowest other rank of its host does.
if memory_group 64; then
  # shellcheck disable=SC2016 # the rank's shell expands it
  ends_at '1:computing:39:sh=echo $PPID >'"$group/cgroup.procs,1:computing:39:memory=300000000" 137 'killed for memory'
  expect_count 1 'error \[rank 0 on .*\] rank 1 on .* is gone, most likely killed for want of memory'
else
  echo 'no control groups here: the rank that is killed for memory was left out'
fi

# With the state cut over the ranks: the same checkpoints, and the same parameters. Rank 2 writes what others hold.
train+=(--shard optimizer --shard-by '0=1,1=3,2=0')
for fault in 1:reduce_scatter:41+ 1:all_gather:43+ 1:checkpoint_collect:46 2:checkpoint_write:48; do
  ends_at "$fault:kill" 137 "SIGKILL, sharded, ${fault%:*}"
done

ends_at "1:ending:$updates:kill" 137 'SIGKILL, ending'
run_ranks 3 "${train[@]}" --save-dir "$run"
expect_ok 'continued to its end'
"$bin/compare_models" "$work/undisturbed/model.safetensors" "$run/model.safetensors" 0 || fail 'other parameters at the end'
