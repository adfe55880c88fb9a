#!/usr/bin/env bash
# pbs.sh under a qsub, qstat and execution host that behave as PBS's do (there is no PBS in Debian).
source "$(dirname "$0")/common.sh"
cd "$work"
export PATH=$here/fake:$PATH FAKE_PBS=$work/spool

# run_job ID [SECONDS]: as an execution host does, in the home folder and with few variables. All its processes get TERM at
# the walltime, or SECONDS after the first update as by qdel, and KILL 3 s later (kill_delay). Its status is in rc, its
# output in ID.log.
run_job() {
  local id=$1 spooled=$FAKE_PBS/$1 killer pid seconds variables trains=true
  [[ -z ${2-} ]] || trains="[[ -s run/updates ]]"
  [[ ! -e $spooled.after || -e $FAKE_PBS/$(<"$spooled.after").rc ]] || fail "$id starts before $(<"$spooled.after") ended"
  seconds=${2:-$(awk -F: '{print 3600 * $1 + 60 * $2 + $3}' "$spooled.walltime")}
  mapfile -t variables <"$spooled.env"
  (cd / && exec setsid env -i HOME="$HOME" PATH="$PATH" FAKE_PBS="$FAKE_PBS" PBS_JOBID="$id" PBS_NODEFILE=/dev/null \
    PBS_O_WORKDIR="$(<"$spooled.workdir")" "${variables[@]}" bash "$spooled.SC") &>"$id.log" &
  pid=$!
  (until eval "$trains"; do sleep 0.1; done; sleep "$seconds" && kill -TERM -- "-$pid" && sleep 3 && kill -KILL -- "-$pid") &>/dev/null &
  killer=$!
  rc=0
  wait "$pid" || rc=$?
  kill "$killer" 2>/dev/null || true
  echo "$rc" >"$spooled.rc"
}

# submit_and_run WALLTIME VARIABLES: the jobs of a chain, one after the other; how many in ran, the last one's status in rc.
submit_and_run() {
  rm -rf run spool ./*.log
  mkdir spool
  sed "s/walltime=12:00:00/walltime=$1/" "$jobs/pbs.sh" >pbs.sh
  qsub -v "$2" pbs.sh >/dev/null
  for ((ran = 0; ran < 9; ++ran)); do
    [[ -e $FAKE_PBS/$((ran + 1)).pbs.SC ]] || break
    run_job "$((ran + 1)).pbs" "${qdel-}"
  done
}
expect() { # RC JOBS: how the last chain ended
  ((rc == $1)) || { cat ./*.pbs.log; fail "exit code $rc, expected $1"; }
  ((ran == $2)) || { cat ./*.pbs.log; fail "$ran jobs, expected $2"; }
}

settings settings 140 margin=4
submit_and_run 00:00:10 HETSEQ_JOB=settings
expect 0 2
expect_log 1.pbs.log 1 'job 2.pbs goes on (number 1 of at most 20)'
expect_log 1.pbs.log 1 '--time-limit 00:00:0'
expect_log 2.pbs.log 1 'start 2 of at most 21'
expect_log 2.pbs.log 1 'resumed at'
expect_log 1.pbs.log 1 'chain 1.pbs'
expect_log 2.pbs.log 1 'chain 1.pbs'
expect_updates run 140
echo 'stopped before the walltime, continued by a job that waited for the first'

settings settings 70 margin=3
submit_and_run 00:00:05 HETSEQ_JOB=settings,PBS_WALLTIME=5
((rc == 0 && ran > 1)) || fail "exit code $rc of $ran jobs"
# On a slow machine the script takes a second until it starts mpirun.
(($(grep -c -e '--time-limit 00:00:0[12]' 1.pbs.log) == 1)) || { cat 1.pbs.log; fail 'not one time limit of 5 s less the margin'; }
expect_updates run 70
echo 'Torque tells the walltime itself'

settings settings 1000 margin=4 max_requeues=1
submit_and_run 00:00:10 HETSEQ_JOB=settings
expect 75 2
expect_log 2.pbs.log 1 'max_requeues=1'
settings settings 1000 margin=4 script=missing.sh
submit_and_run 00:00:06 HETSEQ_JOB=settings
expect 75 1
expect_log 1.pbs.log 1 "$work has no missing.sh"
expect_log 1.pbs.log 1 'qsub did not take missing.sh'
echo 'a bound, and a script that is not found'

settings settings 1000
qdel=2 submit_and_run 01:00:00 HETSEQ_JOB=settings
((ran == 1 && rc != 0)) || fail "exit code $rc of $ran jobs"
expect_log 1.pbs.log 1 'stopped by TERM, as a cancelled job is'
[[ -d $(echo run/checkpoints/update-*) ]] || fail 'qdel left no checkpoint'
submit_and_run 00:00:04 HETSEQ_JOB=settings,FAKE_PBS_HIDES_WALLTIME=1
((ran == 1 && rc != 0)) || fail "exit code $rc of $ran jobs"
expect_log 1.pbs.log 1 'qstat shows no walltime'
[[ -d $(echo run/checkpoints/update-*) ]] || fail 'the walltime left no checkpoint'
echo 'qdel, and a walltime that nobody told, end it with a checkpoint'
