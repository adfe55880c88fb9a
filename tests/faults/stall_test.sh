#!/usr/bin/env bash
# A rank that stalls is named with host, phase and time within the timeout, and the job ends; an idle rank is not a stall.
source "$(dirname "$0")/common.sh"
timeout_s=3
most_seconds=$((timeout_s + 10))
train+=(--stall-timeout "$timeout_s")

for fault in 1:computing:5 1:optimizing:5 0:loading:5 2:validating:6 1:saving:3 0:ending:12; do
  IFS=: read -r rank phase _ <<<"$fault"
  ranks=$((rank < 2 ? 2 : 3))
  run_faulty $ranks "$fault:stall=100" "${train[@]}" --save-dir "$work/$phase"
  expect_block 71 "the job stalls: rank $rank on .* has been $phase .*for [3-9]" "rank 0 of $ranks on "
  table "stall, $phase, rank $rank"
done

# In a collective's own thread: everybody waits, and nobody is ahead.
run_faulty 2 1:reduce_thread:5:stall=100 "${train[@]}" --save-dir "$work/reduce"
expect_block 71 'the job stalls: all ranks wait for each other, reducing update 5' 'rank 0 of 2 on '
table 'stall, reduce_thread'
run_faulty 2 1:all_gather:5+:stall=100 "${train[@]}" --shard optimizer --save-dir "$work/gather"
expect_block 71 'the job stalls: all ranks wait for each other, .*reducing update [5-7]' 'rank 0 of 2 on '
table 'stall, all_gather'
# In the main thread between collectives: it is behind.
run_faulty 2 1:reducing:5:stall=100 "${train[@]}" --save-dir "$work/behind"
expect_block 71 'the job stalls: all ranks wait for each other, rank 1 on .* is behind, reducing update 5' 'rank 0 of 2 on '
table 'stall, behind'
# A thread that reads for the ranks of the host: their loading, of all or of the one that is there first.
run_faulty 2 "1:io_thread:*:stall=100" "${train[@]}" --save-dir "$work/io"
expect_block 71 'the job stalls: (rank 0 on .* has|ranks .* have) been (loading|starting)' 'rank 0 of 2 on '
table 'stall, io_thread'

# A whole process that stands still; when it is rank 0, rank 1 says so, and rank 2 where it missed rank 0 earlier.
run_faulty 3 2:computing:5:stop "${train[@]}" --save-dir "$work/stop2"
expect_block 71 'the job stalls: rank 2 on .* was not heard from for [3-9]' 'rank 0 of 3 on '
table 'SIGSTOP, rank 2'
run_faulty 3 0:computing:5:stop "${train[@]}" --save-dir "$work/stop0"
((rc == 71)) || { cat "$work/log"; fail "exit code $rc, expected 71: SIGSTOP of rank 0"; }
grep -qE ' error .*the job stalls: rank 0 on .* was not heard from for [3-9]' "$work/log" ||
  { cat "$work/log"; fail 'rank 0 is not named'; }
table 'SIGSTOP, rank 0'

# A thread that writes a checkpoint and hangs, while the rank waits for it.
run_faulty 1 0:checkpoint_write:12:stall=100 "${train[@]}" --save-dir "$work/writer"
expect_block 71 'the job stalls: rank 0 on .* has been saving' 'rank 0 '
table 'stall, checkpoint_write'

# At the start and at the end, and in a command that has no --stall-timeout. Rank 0 knows who is missing once MPI runs;
# before, the rank's process is found on the host.
export HETSEQ_MEETING_TIMEOUT=4
check=("$bin/hetseq_faulty" check --task mnist --data "$work/data/train*.h5")
for fault in 1:launched:0 0:launched:0 1:meeting:0 1:command:0 1:leaving:0; do
  IFS=: read -r rank phase _ <<<"$fault"
  run_faulty 2 "$fault:stop" "${check[@]}"
  ((rc == 71)) || { cat "$work/log"; fail "exit code $rc, expected 71: SIGSTOP while $phase"; }
  if [[ $phase == command ]]; then
    expect_block 71 "the job stalls: rank $rank on .* was not heard from for [4-9]" 'rank 0 of 2 on '
  else
    grep -qE " error .*rank [01] on .* has waited ([4-9]|[1-9][0-9])[0-9.]* s (in MPI_Init|to meet at the (start|end)) for the other ranks" "$work/log" ||
      { cat "$work/log"; fail "$fault: nobody says that he waits"; }
    grep -qE "rank $rank, process [0-9]+ of this host, is stopped" "$work/log" || { cat "$work/log"; fail "$fault: not named"; }
  fi
  [[ $phase == launched ]] || [[ $phase == command ]] || grep -q "(rank $rank has not come; " "$work/log" ||
    { cat "$work/log"; fail "$fault: rank 0 does not know who is missing"; }
  table "SIGSTOP, $phase"
done
unset HETSEQ_MEETING_TIMEOUT

# A thread that writes a checkpoint for longer than the timeout, in pieces below it.
most_seconds=90
run_faulty 1 '0:file:12:stall=2' "${train[@]}" --valid-interval 100 --save-dir "$work/slow"
expect_ok 'a slow file system'

# A rank without work waits for others that take 4 s an update, above the timeout, but in pieces below it.
run_faulty 3 "0:computing:*:stall=2,0:loading:*:stall=2" "${train[@]}" --max-update 2 --valid-interval 0 \
  --balance declared --max-sentences 0=8,1=8,2=0
expect_ok 'an idle rank'
