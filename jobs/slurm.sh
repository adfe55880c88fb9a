#!/bin/bash
# Trains with hetseq on Slurm, through as many time limits as it takes, under one job id:  sbatch slurm.sh
# Copy this file, edit 1 to 3, submit. docs/clusters.md (installed: share/doc/hetseq) says what happens then.

# 1. Resources: one task a GPU. --signal: USR1 to this script so many seconds before the time limit.
#SBATCH --nodes=4 --ntasks-per-node=4 --gpus-per-node=4 --cpus-per-task=4 --time=12:00:00
#SBATCH --signal=B:USR1@300 --requeue --open-mode=append --job-name=hetseq --output=%x-%j.log
# 2. Environment modules.
modules=(hetseq)
# 3. The run and its command. `srun --mpi=pmix` may take mpirun's place.
run=runs/bert
command=(mpirun hetseq train "\$HETSEQ_INPUTS/bert-base.cfg" --data 'shards/*.hdf5' --save-dir "$run")

max_requeues=20 # how often a job starts again at most

start_of_job() {
  job=$SLURM_JOB_ID
  restarts=${SLURM_RESTART_COUNT:-0} # Slurm's own count: lost nodes and preemption included
}

# Slurm kills what is left of this start and puts the job back into the queue.
requeue() {
  say "status $status: goes back into the queue (restart $((restarts + 1)) of at most $max_requeues)"
  trap '' TERM
  scontrol requeue "$job" || say "Slurm did not requeue it: submit again to go on"
}

end_of_job() { :; }

# What all job scripts share: copy job.sh along with this file, unless it is an installed one, which holds it.
# shellcheck source=jobs/job.sh
source ./job.sh
