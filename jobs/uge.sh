#!/bin/bash
# Trains with hetseq on Grid Engine, through as many time limits as it takes:  qsub uge.sh
# Copy this file, edit 1 to 3, submit. docs/clusters.md (installed: share/doc/hetseq) says what happens then.

# 1. Resources: one slot per GPU; `qconf -spl` lists a site's parallel environments.
#$ -pe mpi 16 -l h_rt=12:00:00
#$ -notify -r y -cwd -j y -S /bin/bash -N hetseq
# 2. Environment modules.
modules=(hetseq)
# 3. The run and its command, which must end in hetseq's options.
run=runs/bert
command=(mpirun hetseq train "\$HETSEQ_INPUTS/bert-base.cfg" --data 'shards/*.hdf5' --save-dir "$run")

max_requeues=20 # how often a job goes through the queue again at most
min_ranks=1     # with fewer, where hosts were lost, it goes through the queue
margin=60       # seconds before h_rt by which hetseq has stopped by itself

# hetseq gets a time limit of its own. Grid Engine's warning, s_rt, would end a job over several hosts: it also signals
# Grid Engine's starters on the other hosts, and mpirun loses these.
start_of_job() {
  local h_rt
  job=$JOB_ID
  task=${SGE_TASK_ID-} task=${task#undefined} # of an array
  counter=$PWD/hetseq-$job${task:+.$task}.requeues # Grid Engine counts no restarts
  read -r restarts HETSEQ_CHAIN 2>/dev/null <"$counter" || restarts=0
  # The first job's id: a copy waits until its predecessor left the run's folder.
  export HETSEQ_CHAIN=${HETSEQ_CHAIN:-$job${task:+.$task}}
  h_rt=$(qstat -j "$job" | sed -nE 's/^hard.resource_list:.*\bh_rt=([0-9]+).*/\1/p')
  if [[ $h_rt ]]; then
    limit=$((h_rt - margin))
  else
    say "qstat shows no h_rt: hetseq gets no time limit"
  fi
}

# A job on one host goes back into the queue by exiting with 99. One over several hosts would then wait forever for the
# others (Grid Engine waits there for a clean-up that has already happened), so a copy of it is submitted.
requeue() {
  local next=''
  if qstat -s r -u '*' | awk -v job="$job" -v task="$task" '$1 == job && (task == "" || $NF == task) && $5 ~ /d/ {found = 1} END {exit !found}'; then
    say "deleted by qdel: submit it again to go on"
    return
  fi
  if ((NHOSTS > 1)) && [[ $task ]]; then
    say "status $status: not started again, since a copy would be one of the whole array: submit task $task again"
    return
  fi
  if ((NHOSTS > 1)); then
    next=$(qresub -h u "$job" | sed -nE 's/^Your job ([0-9]+) .*/\1/p')
    if [[ $next ]] && echo $((restarts + 1)) "$HETSEQ_CHAIN" >"hetseq-$next.requeues" && qrls "$next"; then
      say "status $status: job $next, a copy of this one, goes on (restart $((restarts + 1)) of at most $max_requeues)"
      return
    fi
    say "no copy of it could be submitted${next:+, or let go: qdel $next}"
  fi
  echo $((restarts + 1)) "$HETSEQ_CHAIN" >"$counter" || { say "$counter cannot be written: not started again"; return; }
  say "status $status: goes back into the queue (restart $((restarts + 1)) of at most $max_requeues)"
  exit 99
}

hosts_of_job() { awk '{print $1, $2}' "$PE_HOSTFILE"; }

end_of_job() { rm -f "$counter"; }

# What all job scripts share: copy job.sh along with this file, unless it is an installed one, which holds it.
# shellcheck source=jobs/job.sh
source ./job.sh
