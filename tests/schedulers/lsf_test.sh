#!/usr/bin/env bash
# lsf.sh under a bsub that behaves as LSF's does (fake/bsub; there is no LSF that anybody may install).
source "$(dirname "$0")/common.sh"
cd "$work"
export PATH=$here/fake:$PATH HETSEQ_JOB=settings
log=hetseq-41.log
# submit [OPTION...]: its status in rc, what each start ended with in `starts`.
submit() {
  rm -rf run "$log"
  rc=0
  bsub "$@" <"$jobs/lsf.sh" >starts || rc=$?
}

# A first start makes 160 updates at most. On a busy machine it makes a few, and the second one the others.
settings settings 180
submit -W 9 -wt 1
((rc == 0)) || { cat starts "$log"; fail "exit code $rc"; }
expect_log starts 1 'start 1 status 99'
expect_log starts 1 'start 2 status 0'
expect_log "$log" 1 'USR1: hetseq is asked'
expect_log "$log" 1 'resumed at'
expect_updates run 180
[[ ! -e hetseq-41.requeues ]] || fail 'the counter outlived the job'
echo 'warned by -wa, requeued by -Q, finished in one job'

submit -W 8 -wt 9 -wa ''
((rc == 0)) || { cat starts "$log"; fail "exit code $rc"; }
expect_log "$log" 1 'USR2: hetseq is asked'
expect_updates run 180
echo 'without -wa: the run limit'

settings settings 1000 max_requeues=1
submit -W 5 -wt 1
((rc == 75)) || { cat starts "$log"; fail "exit code $rc"; }
expect_log starts 1 'start 2 status 75'
expect_log "$log" 1 'max_requeues=1'
[[ ! -e hetseq-41.requeues ]] || fail 'the counter outlived the job'
echo 'a bound'

settings settings 1000
FAKE_BKILL=1 submit -W 60
((rc == 75)) || { cat starts "$log"; fail "exit code $rc"; }
expect_log starts 1 'start 1 status'
expect_log "$log" 1 'stopped by INT, as a cancelled job is'
[[ -d $(echo run/checkpoints/update-*) ]] || fail 'bkill left no checkpoint'
echo 'bkill ends it, with a checkpoint'
