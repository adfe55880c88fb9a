#!/bin/bash
# Trains with hetseq where there is no scheduler, and starts it again when a rank or a host is lost:  nohup bash local.sh &
# Copy this file, edit 1 to 3. docs/clusters.md (installed: share/doc/hetseq) says what happens then. Ctrl-C, or TERM to this
# script, writes a checkpoint and stops; the same command goes on.

# 1. Hosts, each with its number of processes: one per GPU. They are reached by ssh without a password.
hosts=(localhost:4) # (node01:4 node02:2)
# 2. Environment modules.
modules=()
# 3. The run and its command.
run=runs/bert
command=(mpirun -x HETSEQ_CHAIN -x HETSEQ_RESTARTED hetseq train "\$HETSEQ_INPUTS/bert-base.cfg" --data 'shards/*.hdf5' --save-dir "$run")

max_requeues=0 # there is no queue
min_ranks=1    # it ends with fewer, where hosts were lost

start_of_job() {
  job=$$
  restarts=0
  export HETSEQ_CHAIN=local-$HOSTNAME-$$ # of the starts of this script
  at_hosts=("${hosts[@]}")
}

hosts_of_job() { printf '%s\n' "${hosts[@]}" | tr ':' ' '; }

requeue() { :; }

end_of_job() { :; }

# What all job scripts share: copy job.sh along with this file, unless it is an installed one, which holds it.
# shellcheck source=jobs/job.sh
source ./job.sh
