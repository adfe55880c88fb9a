#!/usr/bin/env bash
# usage: slurm_test.sh BINARY_DIR
# slurm.sh on a real Slurm: time limit, checkpoint, requeue, resume and end under one job id; scancel; a lost node; a killed rank.
# shellcheck source=tests/schedulers/cluster.sh
source "$(dirname "$0")/cluster.sh"
make_images
box_up slurm-box h1:cpu=1.0,slots=2 h2:cpu=1.0,slots=2
export HETSEQ_JOB=$work/settings PATH=$bin:$PATH
resources=(--parsable --nodes=2 --ntasks-per-node=1 --gpus-per-node=0 --cpus-per-task=1)

# field JOB NAME: of what Slurm knows about a job.
field() { "$box" exec scontrol show job "$1" | grep -oP "\b$2=\K\S+"; }
is_over() { [[ $(field "$1" JobState) =~ ^(COMPLETED|FAILED|CANCELLED|TIMEOUT)$ ]]; }

settings max_requeues=9
# Slurm looks at its clocks every 30 s: the warning comes after 20 to 50 s.
id=$("$box" exec sbatch "${resources[@]}" --time=1 --signal=B:USR1@40 "$jobs/slurm.sh")
wait_for 300 "end of job $id" is_over "$id"
state="$(field "$id" JobState) $(field "$id" ExitCode) $(field "$id" Restarts)"
[[ $state =~ ^COMPLETED\ 0:0\ [1-9]$ ]] || { cat "$work"/hetseq*; fail "job $id: $state"; }
expect_log "${state##* }" 'status 75: goes back into the queue'
expect_log 1 "job $id: start 2 of at most 10"
expect_log "${state##* }" 'continues from'
expect_log 1 "job $id: finished"
expect_run
echo "time limit, requeue, resume, finish: job $id: $state, $(<"$work/goal") updates"

next_run
id=$("$box" exec sbatch "${resources[@]}" --time=5 --signal=B:USR1@60 "$jobs/slurm.sh")
wait_for 60 updates has_updates 20
"$box" exec scancel "$id"
wait_for 30 "end of job $id" is_over "$id"
[[ $(field "$id" JobState) == CANCELLED ]] || fail "a cancelled job is $(field "$id" JobState)"
id=$("$box" exec sbatch "${resources[@]}" --time=5 --signal=B:USR1@60 "$jobs/slurm.sh")
wait_for 100 "end of job $id" is_over "$id"
expect_log 1 "job $id: finished"
expect_log 1 'continues from'
expect_run
echo 'scancel leaves a checkpoint and no job; submitted again it goes on'

next_run
id=$("$box" exec sbatch "${resources[@]}" --time=5 --signal=B:USR1@60 "$jobs/slurm.sh")
wait_for 60 updates has_updates 5
touch "$work/run/STOP"
wait_for 60 "end of job $id" is_over "$id"
[[ $(field "$id" ExitCode) == 75:0 ]] || fail "job $id ended with $(field "$id" ExitCode)"
expect_log 1 "job $id: stopped by $work/run/STOP"
echo 'the file STOP ends it for good'

# mpirun notices a cut link after 10 s. The job goes on at once without that node.
next_run
settings 'command+=(--save-interval-updates 10)'
id=$("$box" exec sbatch "${resources[@]}" --time=5 --signal=B:USR1@60 "$jobs/slurm.sh")
wait_for 60 updates has_updates 30
"$vcluster" partition h2
wait_for 60 'start without the lost node' grep -qs 'status 205: starts again here' "$work/hetseq-$id.log"
expect_log 1 'does not answer: h2'
wait_for 60 'word of the checkpoint' grep -qs 'continues from' "$work/hetseq-$id.log"
before=$(updates)
wait_for 60 'updates without the lost node' has_updates $((before + 20))
touch "$work/run/STOP"
wait_for 60 "end of job $id" is_over "$id"
[[ $(field "$id" ExitCode) == 75:0 ]] || fail "job $id ended with $(field "$id" ExitCode)"
"$vcluster" heal h2
echo "a lost node: job $id goes on without it"

# Where too few ranks are left, Slurm lets the job start again once the node is back.
next_run
settings 'command+=(--save-interval-updates 10)' min_ranks=2
id=$("$box" exec sbatch "${resources[@]}" --time=5 --signal=B:USR1@60 "$jobs/slurm.sh")
wait_for 60 updates has_updates 30
"$vcluster" partition h2
wait_for 60 'word of the lost node' grep -qs 'status 205: goes back' "$work/hetseq-$id.log"
expect_log 1 '1 ranks are left (min_ranks=2)'
"$vcluster" heal h2
wait_for 150 "end of job $id" is_over "$id"
[[ $(field "$id" Restarts) == 1 ]] || fail "job $id started again $(field "$id" Restarts) times"
expect_log 1 "job $id: finished"
expect_run
echo "a lost node of a job that needs it: job $id goes on when it is back"

# A killed rank costs no way through the queue.
next_run
settings 'command+=(--save-interval-updates 10)'
id=$("$box" exec sbatch "${resources[@]}" --time=5 --signal=B:USR1@60 "$jobs/slurm.sh")
wait_for 60 updates has_updates 30
kill_rank
wait_for 60 'start in place' grep -qs 'starts again here' "$work/hetseq-$id.log"
wait_for 60 'word of the checkpoint' grep -qs 'continues from' "$work/hetseq-$id.log"
touch "$work/run/STOP"
wait_for 60 "end of job $id" is_over "$id"
[[ $(field "$id" ExitCode) == 75:0 ]] || fail "job $id ended with $(field "$id" ExitCode)"
echo "a killed rank: job $id goes on at once"
