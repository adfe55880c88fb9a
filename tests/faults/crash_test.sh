#!/usr/bin/env bash
# A rank that is killed or crashes, at any moment, a checkpoint's writing included, ends the job in seconds; the same
# command then continues from the newest checkpoint to the parameters of an undisturbed run. Each start costs seconds, so
# each phase and each way to die is met once: `throw`, `pipeline` and `soak` have others of their pairs.
updates=36
source "$(dirname "$0")/common.sh"
train+=(--save-interval-updates 2 --balance equal)

run_ranks 2 "${train[@]}" --save-dir "$work/undisturbed" --keep-last 0
expect_ok 'undisturbed'

# One run, which each fault ends and the next start continues, to the next fault at a later update.
run=$work/run
# newest: the update of its newest checkpoint.
newest() { [[ ! -e $run/checkpoints ]] || find "$run/checkpoints" -maxdepth 1 -name 'update-*' | sort | tail -n 1 | sed 's/.*update-0*//'; }
# expect_parameters: those of its newest checkpoint, if it has one, are the undisturbed run's.
expect_parameters() {
  [[ $(newest) ]] || return 0
  local checkpoint
  checkpoint=checkpoints/update-$(printf %08d "$(newest)")/model.safetensors
  cmp "$work/undisturbed/$checkpoint" "$run/$checkpoint" || fail "before $1: other parameters"
}
# ends_at FAULT CODE NAME: the fault ends it with this code, and its newest checkpoint is the undisturbed run's.
ends_at() {
  run_faulty 2 "$1" "${train[@]}" --save-dir "$run"
  if [[ $2 == any ]]; then ((rc != 0)); else ((rc == $2)); fi || { cat "$work/log"; fail "exit code $rc, expected $2: $1"; }
  ! grep -q 'cannot be used' "$work/log" || { cat "$work/log"; fail "before $1: half a checkpoint bears a name"; }
  table "$3"
  expect_parameters "$1"
}
# killed_at RANK:POINT:UPDATE
killed_at() {
  ends_at "$1:kill" 137 "SIGKILL, ${1%:*}"
  grep -q "rank ${1%%:*} .*signal 9" "$work/log" || { cat "$work/log"; fail "$1: the rank is not named"; }
}
# crashes_at POINT:UPDATE TEXT: on rank 1, whose last line ends with TEXT, a regular expression.
crashes_at() {
  ends_at "1:$1:segv" 139 "SIGSEGV, ${1%:*}"
  expect_count 1 '^error: the program was ended by SIGSEGV'
  expect_count 1 "^  hetseq .*, rank 1 of 2 on .*, $2$"
}

killed_at 1:starting:0
# The loader works ahead, in a thread of its own, so it may not be at work during each update.
crashes_at loader_thread:3+ '[a-z]+, update [1-9][0-9]*'
ends_at 1:agreeing:6:exit any 'leaves without a word'
crashes_at computing:8 'computing, update 8'
crashes_at reduce_thread:10 '[a-z]+, update 10'
# A rank that the kernel kills for want of memory says nothing itself; the lowest other rank of its host does.
if memory_group 64; then
  # shellcheck disable=SC2016 # the rank's shell expands it
  ends_at '1:optimizing:12:sh=echo $PPID >'"$group/cgroup.procs,1:optimizing:12:memory=300000000" 137 'killed for memory'
  expect_count 1 'error \[rank 0 on .*\] rank 1 on .* is gone, most likely killed for want of memory'
else
  echo 'no control groups here: the rank that is killed for memory was left out'
  killed_at 1:optimizing:12
fi
killed_at 1:validating:15
killed_at 1:saving:18
[[ $(newest) ]] || fail 'no checkpoint after eight faults'

# Rank 0 writes the model and gives checkpoints their name, the others write parts of the optimizer's state.
for fault in 0:checkpoint_copy:20 0:checkpoint_write:22 0:file:24+ 0:checkpoint_commit:26 1:checkpoint_write:28; do
  if [[ $fault == 1:* ]]; then crashes_at "${fault#1:}" '[a-z]+, update (28|29|30)'; else killed_at "$fault"; fi
  # While an update is at work the checkpoint of the one before may still be written.
  update=${fault##*:}; update=${update%+}
  [[ $(newest) == $((update - 2)) || $(newest) == $((update - 4)) ]] ||
    { cat "$work/log"; fail "$fault: the newest checkpoint is of update $(newest)"; }
done

# With the state cut over the ranks: the same checkpoints, and the same parameters.
train+=(--shard optimizer --shard-by '0=1,1=3')
for fault in 1:reduce_scatter:29+ 1:all_gather:31+ 1:checkpoint_collect:34; do killed_at "$fault"; done
# A rank writes what another one holds.
train+=(--shard-by '0=1,1=0')
killed_at 1:checkpoint_write:36

killed_at "1:ending:$updates"
run_ranks 2 "${train[@]}" --save-dir "$run"
expect_ok 'continued to its end'
cmp "$work/undisturbed/model.safetensors" "$run/model.safetensors" || fail 'other parameters at the end'
