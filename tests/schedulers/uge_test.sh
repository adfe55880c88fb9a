#!/usr/bin/env bash
# usage: uge_test.sh BINARY_DIR
# uge.sh on a real Grid Engine: hetseq's own time limit below h_rt, checkpoint, another start, resume and end, on one host
# under one job id, over two hosts by a copy of the job; qdel; a killed rank.
# shellcheck source=tests/schedulers/cluster.sh
source "$(dirname "$0")/cluster.sh"
make_images
box_up sge-box h1:cpu=1.0,slots=2 h2:cpu=1.0,slots=2
export HETSEQ_JOB=$work/settings PATH=$bin:$PATH
submit=("$box" exec qsub -terse -V -pe mpi 2)

is_over() { ! "$box" exec qstat -j "$1" &>/dev/null; }
nothing_left() { [[ -z $("$box" exec qstat) ]]; }
no_counter() { ! compgen -G "$work/*.requeues" || fail 'a counter outlived its job'; }

settings margin=15
id=$("${submit[@]}" -l hostname=h1 -l h_rt=40 "$jobs/uge.sh")
wait_for 200 "end of job $id" is_over "$id"
expect_log 1 "job $id: start 2 of at most 21"
expect_log 1 "job $id: finished"
expect_run
no_counter
echo "one host: time limit, rescheduling, resume, finish: job $id, $(<"$work/goal") updates"

next_run
first=$("${submit[@]}" -l h_rt=40 "$jobs/uge.sh")
wait_for 200 'end of all jobs' nothing_left
expect_log 1 "job $first: start 1 of at most 21"
expect_log 1 "job $((first + 1)): start 2 of at most 21"
expect_log 1 "job $((first + 1)): finished"
expect_run
no_counter
echo "two hosts: time limit, a copy of the job, resume, finish: jobs $first and $((first + 1)), $(<"$work/goal") updates"

next_run
id=$("${submit[@]}" -l h_rt=200 "$jobs/uge.sh")
wait_for 60 updates has_updates 20
"$box" exec qdel "$id" >/dev/null
wait_for 60 'end of all jobs' nothing_left
expect_log 1 'start 1 of'
id=$("${submit[@]}" -l h_rt=200 "$jobs/uge.sh")
wait_for 100 "end of job $id" is_over "$id"
expect_log 1 "job $id: finished"
expect_log 1 'continues from'
expect_run
echo 'qdel leaves a checkpoint and no job; submitted again it goes on'

# A killed rank costs no way through the queue.
next_run
settings 'command+=(--save-interval-updates 10)'
id=$("${submit[@]}" -l h_rt=200 "$jobs/uge.sh")
wait_for 60 updates has_updates 30
kill_rank
wait_for 60 'start in place' grep -qs 'starts again here' "$work/hetseq.o$id"
wait_for 60 'word of the checkpoint' grep -qs 'continues from' "$work/hetseq.o$id"
touch "$work/run/STOP"
wait_for 100 "end of job $id" is_over "$id"
expect_log 1 'start 1 of'
echo "a killed rank: job $id goes on at once"
