#!/usr/bin/env bash
# A rank that throws, in any phase and any thread, ends the job in seconds with one block that names it.
source "$(dirname "$0")/common.sh"

# Met while the others go on: the rank says so itself, and ends them.
for fault in starting:0 agreeing:5 computing:5 reducing:5 optimizing:5 saving:3 ending:12 reduce_thread:5; do
  run_faulty 2 "1:$fault:throw" "${train[@]}" --save-dir "$work/${fault%:*}"
  expect_block 70 '\[rank 1 on .*\] a fault on purpose' 'rank 1 of 2 on '
  table "throw, ${fault%:*}"
done

# Where the optimizer's state is cut over the ranks.
for fault in reduce_scatter:5 all_gather:5; do
  run_faulty 2 "1:$fault:throw" "${train[@]}" --shard optimizer --save-dir "$work/${fault%:*}"
  expect_block 70 '\[rank 1 on .*\] a fault on purpose' 'rank 1 of 2 on '
  table "throw, ${fault%:*}"
done

# Met before a collective: all ranks learn of it there, and leave in order.
for fault in loading:5 'loader_thread:*' 'io_thread:*' validating:6; do
  run_faulty 2 "1:$fault:throw" "${train[@]}" --save-dir "$work/${fault%:*}"
  expect_block 70 'a fault on purpose \[rank 1 on ' '2 ranks, '
  table "throw, ${fault%:*}"
done

# In the thread that saves a checkpoint: it is not saved, and training goes on.
for fault in checkpoint_copy:2 checkpoint_write:2; do
  for rank in 0 1; do
    run=$work/${fault%:*}-$rank
    run_faulty 2 "$rank:$fault:throw" "${train[@]}" --save-interval-updates 2 --keep-last 0 --save-dir "$run"
    expect_ok "$fault on rank $rank"
    expect_count 1 "\\[rank $rank on .*\\] the checkpoint of update 2 is not saved: a fault on purpose"
    [[ ! -e $run/checkpoints/update-00000002 && -e $run/checkpoints/update-00000004 ]] || fail "$fault: the checkpoints"
    table "throw, ${fault%:*}"
  done
done

# The others wait for what this rank holds of the state, so it takes part though it has failed.
for rank in 0 1; do
  run=$work/collect-$rank
  run_faulty 2 "$rank:checkpoint_collect:2:throw" "${train[@]}" --shard optimizer --save-interval-updates 2 --keep-last 0 \
    --save-dir "$run"
  expect_ok "checkpoint_collect on rank $rank"
  expect_count 1 "\\[rank $rank on .*\\] the checkpoint of update 2 is not saved: a fault on purpose"
  [[ ! -e $run/checkpoints/update-00000002 && -e $run/checkpoints/update-00000004 ]] || fail 'collect: the checkpoints'
  table 'throw, checkpoint_collect'
done

# Rank 0, which speaks for all, and two ranks at once.
run_faulty 2 0:optimizing:5:throw "${train[@]}" --save-dir "$work/zero"
expect_block 70 '\[rank 0 on .*\] a fault on purpose' 'rank 0 of 2 on '
table 'throw, optimizing, rank 0'
run_faulty 3 '1:computing:5:throw,2:computing:5:throw' "${train[@]}" --save-dir "$work/two"
((rc == 70)) || { cat "$work/log"; fail "exit code $rc after two ranks threw"; }

# In a thread where nobody catches it.
run_faulty 2 1:computing:5:throw-in-thread "${train[@]}" --save-dir "$work/thread"
((rc == 134)) || { cat "$work/log"; fail "exit code $rc, expected 134 (SIGABRT)"; }
expect_count 1 'what\(\):  a fault on purpose'
expect_count 1 '^error: the program was ended by SIGABRT'
expect_count 1 '^  hetseq .*, rank 1 of 2 on .*, computing, update 5$'
table 'throw, nobody catches'
