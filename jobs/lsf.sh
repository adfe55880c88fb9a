#!/bin/bash
# Trains with hetseq on LSF, through as many time limits as it takes, under one job id:  bsub < lsf.sh
# Copy this file, edit 1 to 3, submit. docs/clusters.md (installed: share/doc/hetseq) says what happens then.

# 1. Resources: one slot per GPU. -wa and -wt send USR1 this many minutes before the run limit.
#BSUB -n 16 -R "span[ptile=4]" -gpu "num=4" -W 12:00
#BSUB -wa USR1 -wt 5 -Q 99 -r -J hetseq -o hetseq-%J.lsf
# 2. Environment modules.
modules=(hetseq)
# 3. The run and its command.
run=runs/bert
command=(mpirun --hostfile "$LSB_DJOB_HOSTFILE" hetseq train "\$HETSEQ_INPUTS/bert-base.cfg" --data 'shards/*.hdf5' --save-dir "$run")

max_requeues=20 # how often a job goes through the queue again at most
min_ranks=1     # with fewer, where hosts were lost, it goes through the queue

element=${LSB_JOBID}${LSB_JOBINDEX:+-$LSB_JOBINDEX} # of an array; 0: there is none
element=${element%-0}
exec >>"hetseq-$element.log" 2>&1 # LSF drops the output of a start that it requeues

start_of_job() {
  job=$element
  counter=$PWD/hetseq-$job.requeues # LSF tells no count of restarts
  restarts=$(cat "$counter" 2>/dev/null || echo 0)
}

# LSF requeues a job that exits with 99 (-Q). 75 itself means stopped and not started again.
requeue() {
  echo $((restarts + 1)) >"$counter" || { say "$counter cannot be written: not started again"; return; }
  say "status $status: goes back into the queue (restart $((restarts + 1)) of at most $max_requeues)"
  exit 99
}

hosts_of_job() { sort "$LSB_DJOB_HOSTFILE" | uniq -c | awk '{print $2, $1}'; }

end_of_job() { rm -f "$counter"; }

# What all job scripts share: copy job.sh along with this file, unless it is an installed one, which holds it.
# shellcheck source=jobs/job.sh
source ./job.sh
