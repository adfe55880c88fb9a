#!/bin/bash
# Trains with hetseq on PBS Professional, OpenPBS or Torque, in as many jobs as it takes:  qsub pbs.sh
# Copy this file, edit 1 to 3, submit. docs/clusters.md (installed: share/doc/hetseq) says what happens then.

# 1. Resources: one MPI process per GPU. (Torque: -l nodes=4:ppn=4:gpus=4)
#PBS -l select=4:ncpus=16:mpiprocs=4:ngpus=4 -l walltime=12:00:00
#PBS -N hetseq -j oe -r y -S /bin/bash
# 2. Environment modules.
modules=(hetseq)
# 3. The run and its command, which must end in hetseq's options; and this file's name, seen from where it is submitted.
run=runs/bert
command=(mpirun --hostfile "$PBS_NODEFILE" hetseq train "\$HETSEQ_INPUTS/bert-base.cfg" --data 'shards/*.hdf5' --save-dir "$run")
script=pbs.sh

max_requeues=20 # how many jobs may follow the first
min_ranks=1     # with fewer, where hosts were lost, the next job goes on
margin=60       # seconds before the walltime by which hetseq has stopped by itself

cd "$PBS_O_WORKDIR" || exit 66 # PBS starts jobs in the home folder

# PBS sends TERM at the walltime and KILL after kill_delay, 10 s unless the site says otherwise: too little for a
# checkpoint, so hetseq gets a time limit of its own. Torque tells it in PBS_WALLTIME, in seconds.
start_of_job() {
  local walltime
  job=$PBS_JOBID
  restarts=${HETSEQ_REQUEUES:-0} # handed from job to job
  export HETSEQ_CHAIN=${HETSEQ_CHAIN:-$job} # the first job's id: a later one waits until its predecessor left the run's folder
  walltime=${PBS_WALLTIME:-$(qstat -f "$job" | sed -nE 's/^ *Resource_List\.walltime = ([0-9:]+)$/\1/p')}
  if [[ $walltime ]]; then
    limit=$(awk -F: -v margin="$margin" '{for (i = 1; i <= NF; i++) s = 60 * s + $i; print s - margin}' <<<"$walltime")
  else
    say "qstat shows no walltime: hetseq gets no time limit"
  fi
  [[ -r $script ]] || say "$PWD has no $script, so no job can follow this one: set script"
}

# Submits the next job, which waits for this one's end. qrerun would keep the job's id, but only PBS's operators may use it.
requeue() {
  local next variables=HETSEQ_REQUEUES=$((restarts + 1)),HETSEQ_CHAIN=$HETSEQ_CHAIN${HETSEQ_JOB:+,HETSEQ_JOB=$HETSEQ_JOB}
  if [[ ${PBS_ARRAY_INDEX-}${PBS_ARRAYID-} ]]; then
    say "status $status: not started again, since the script would be submitted as a whole array: submit $PBS_JOBID again"
    return
  fi
  next=$(qsub -W "depend=afterany:$job" -v "$variables" "$script") ||
    { say "qsub did not take $script: submit it again to go on"; return; }
  say "status $status: job $next goes on (number $((restarts + 1)) of at most $max_requeues)"
}

hosts_of_job() { sort "$PBS_NODEFILE" | uniq -c | awk '{print $2, $1}'; }

end_of_job() { :; }

# What all job scripts share: copy job.sh along with this file, unless it is an installed one, which holds it.
# shellcheck source=jobs/job.sh
source ./job.sh
