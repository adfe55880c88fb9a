#!/usr/bin/env bash
# A rank that throws, in any phase and any thread, ends the job in seconds with one block that names it.
source "$(dirname "$0")/common.sh"

# Met while the others go on: the rank says so itself, and ends them.
for fault in starting:0 agreeing:5 computing:5 reducing:5 saving:3 reduce_thread:5; do
  run_faulty 2 "1:$fault:throw" "${train[@]}" --save-dir "$work/${fault%:*}"
  expect_block 70 '\[rank 1 on .*\] a fault on purpose' 'rank 1 of 2 on '
  table "throw, ${fault%:*}"
done
# Rank 0, which speaks for all, and two ranks at once.
run_faulty 2 0:optimizing:5:throw "${train[@]}" --save-dir "$work/zero"
expect_block 70 '\[rank 0 on .*\] a fault on purpose' 'rank 0 of 2 on '
table 'throw, optimizing, rank 0'
run_faulty 3 '1:computing:5:throw,2:computing:5:throw' "${train[@]}" --save-dir "$work/two"
((rc == 70)) || { cat "$work/log"; fail "exit code $rc after two ranks threw"; }

# Where the optimizer's state is cut over the ranks.
run_faulty 2 1:reduce_scatter:5:throw "${train[@]}" --shard optimizer --save-dir "$work/scatter"
expect_block 70 '\[rank 1 on .*\] a fault on purpose' 'rank 1 of 2 on '
table 'throw, reduce_scatter'

# Met before a collective: all ranks learn of it there, and leave in order.
for fault in loading:5 'loader_thread:*' 'io_thread:*' validating:6; do
  run_faulty 2 "1:$fault:throw" "${train[@]}" --save-dir "$work/${fault%:*}"
  expect_block 70 'a fault on purpose \[rank 1 on ' '2 ranks, '
  table "throw, ${fault%:*}"
done

# In the thread that saves a checkpoint: it is not saved, and training goes on, here until a rank throws in the main
# thread. Three failures in a row would end it.
train+=(--save-interval-updates 2 --keep-last 0)
# expect_saved UPDATE YES_OR_NO...: which checkpoints there are in $run.
expect_saved() {
  while (($#)); do
    if [[ $2 == yes ]]; then
      [[ -e $run/checkpoints/update-$(printf %08d "$1") ]] || { cat "$work/log"; fail "no checkpoint of update $1"; }
    else
      [[ ! -e $run/checkpoints/update-$(printf %08d "$1") ]] || { cat "$work/log"; fail "a checkpoint of update $1"; }
    fi
    shift 2
  done
}
# expect_unsaved RANK UPDATE
expect_unsaved() { expect_count 1 "\\[rank $1 on .*\\] the checkpoint of update $2 is not saved: a fault on purpose"; }

run=$work/saver
faults=0:checkpoint_copy:2:throw,1:checkpoint_copy:4:throw,0:checkpoint_write:8:throw,1:checkpoint_write:10:throw
run_faulty 2 "$faults,1:ending:12:throw" "${train[@]}" --save-dir "$run"
expect_block 70 '\[rank 1 on .*\] a fault on purpose' 'rank 1 of 2 on '
expect_unsaved 0 2
expect_unsaved 1 4
expect_unsaved 0 8
expect_unsaved 1 10
expect_saved 2 no 4 no 6 yes 8 no 10 no 12 yes
table 'throw, checkpoint_copy, checkpoint_write, ending'

# The others wait for what this rank holds of the state, so it takes part though it has failed. The checkpoint before
# the one that is written is there.
run=$work/collect
run_faulty 2 0:checkpoint_collect:2:throw,1:checkpoint_collect:6:throw,1:all_gather:12:throw "${train[@]}" \
  --shard optimizer --save-dir "$run"
expect_block 70 '\[rank 1 on .*\] a fault on purpose' 'rank 1 of 2 on '
expect_unsaved 0 2
expect_unsaved 1 6
expect_saved 2 no 4 yes 6 no 8 yes
table 'throw, checkpoint_collect, all_gather'

# In a thread where nobody catches it.
run_faulty 2 1:computing:5:throw-in-thread "${train[@]}" --save-dir "$work/thread"
((rc == 134)) || { cat "$work/log"; fail "exit code $rc, expected 134 (SIGABRT)"; }
expect_count 1 'what\(\):  a fault on purpose'
expect_count 1 '^error: the program was ended by SIGABRT'
expect_count 1 '^  hetseq .*, rank 1 of 2 on .*, computing, update 5$'
table 'throw, nobody catches'
