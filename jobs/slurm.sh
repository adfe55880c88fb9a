#!/bin/bash
# Trains with hetseq on Slurm, through as many time limits as it takes, under one job id:  sbatch slurm.sh
# Copy this file, edit 1 to 3, submit. docs/clusters.md (installed: share/doc/hetseq) says what happens then.

# 1. Resources: one task per GPU. Two kinds of nodes: add --constraint=[v100*2&p100*2], with the features of your site. --signal sends USR1 to this script this many seconds before the time limit.
#SBATCH --nodes=4 --ntasks-per-node=4 --gpus-per-node=4 --cpus-per-task=4 --time=12:00:00
#SBATCH --signal=B:USR1@300 --requeue --no-kill --open-mode=append --job-name=hetseq --output=%x-%j.log
# 2. Environment modules.
modules=(hetseq)
# 3. The run and its command. `srun --mpi=pmix` may take mpirun's place.
run=runs/bert
command=(mpirun hetseq train "\$HETSEQ_INPUTS/bert-base.cfg" --data 'shards/*.hdf5' --save-dir "$run")
# Where one build does not run on all nodes: the program that takes hetseq's place on the nodes of each feature (MPMD).
declare -A builds=() # ([v100]=/software/hetseq-v100/bin/hetseq [p100]=/software/hetseq-p100/bin/hetseq)

max_requeues=20 # how often a job goes through the queue again at most
min_ranks=1     # with fewer, where hosts were lost, it goes through the queue

start_of_job() {
  job=$SLURM_JOB_ID
  restarts=${SLURM_RESTART_COUNT:-0} # Slurm's own count: lost nodes and preemption included
  if ((${#builds[@]})); then
    one_part_a_build
  fi
}

# SLURM_TASKS_PER_NODE is as 4(x2),3.
hosts_of_job() {
  local hosts slots=() part host
  mapfile -t hosts < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
  for part in ${SLURM_TASKS_PER_NODE//,/ }; do
    [[ $part =~ ^([0-9]+)(\(x([0-9]+)\))?$ ]]
    for ((host = 0; host < ${BASH_REMATCH[3]:-1}; ++host)); do slots+=("${BASH_REMATCH[1]}"); done
  done
  for host in "${!hosts[@]}"; do
    echo "${hosts[host]} ${slots[host]}"
  done
}

# nodes_of FEATURE: the nodes of this job that have it, one per line.
nodes_of() {
  sinfo -h -N -n "$SLURM_JOB_NODELIST" -o '%N %f' | sort -u |
    awk -v feature="$1" '("," $2 ",") ~ ("," feature ",") {print $1}'
}

# Rewrites `mpirun OPTIONS hetseq ARGUMENTS` to `mpirun OPTIONS -np N --host NODES BUILD ARGUMENTS : -np ...`.
one_part_a_build() {
  local launcher=() arguments=("${command[@]}") feature nodes parts=()
  while [[ ${#arguments[@]} != 0 && ${arguments[0]} != hetseq ]]; do
    launcher+=("${arguments[0]}")
    arguments=("${arguments[@]:1}")
  done
  ((${#arguments[@]})) || { say "the command has no word 'hetseq' that a build could replace"; exit 78; }
  for feature in $(printf '%s\n' "${!builds[@]}" | sort); do
    mapfile -t nodes < <(nodes_of "$feature")
    ((${#nodes[@]})) || { say "no node of this job has the feature $feature: see builds"; exit 78; }
    ((${#parts[@]} == 0)) || parts+=(:)
    parts+=(-np $((${#nodes[@]} * SLURM_NTASKS_PER_NODE)))
    parts+=(--host "$(printf "%s:$SLURM_NTASKS_PER_NODE\n" "${nodes[@]}" | paste -sd,)")
    parts+=("${builds[$feature]}" "${arguments[@]:1}")
  done
  command=("${launcher[@]}" "${parts[@]}")
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
