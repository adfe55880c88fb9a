#!/bin/bash
# Trains with hetseq on two kinds of nodes in one Slurm allocation:  sbatch slurm-heterogeneous.sh
# Copy this file, edit 1 to 3, submit. docs/clusters.md (installed: share/doc/hetseq) says what happens then, at a time limit too.

# 1. Resources: the constraint names how many nodes of each feature; `sinfo -o '%N %f %G'` lists a site's features.
#SBATCH --nodes=4 --constraint=[v100*2&p100*2] --ntasks-per-node=4 --gpus-per-node=4 --cpus-per-task=4 --time=12:00:00
#SBATCH --signal=B:USR1@300 --requeue --open-mode=append --job-name=hetseq --output=%x-%j.log
# 2. Environment modules.
modules=(hetseq)
# 3. The run and its command: what each kind of device holds at once, by its name. hetseq measures which share each takes.
run=runs/bert
command=(mpirun hetseq train "\$HETSEQ_INPUTS/bert-base.cfg" --data 'shards/*.hdf5' --max-sentences 'v100=64,p100=32' --save-dir "$run")
# Where one build does not run on both kinds of nodes: the program that takes hetseq's place on the nodes of each feature (MPMD).
declare -A builds=() # ([v100]=/software/hetseq-v100/bin/hetseq [p100]=/software/hetseq-p100/bin/hetseq)

max_requeues=20 # how often a job starts again at most

start_of_job() {
  job=$SLURM_JOB_ID
  restarts=${SLURM_RESTART_COUNT:-0} # Slurm's own count: lost nodes and preemption included
  if ((${#builds[@]})); then
    one_part_a_build
  fi
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

# ---- From here on all job scripts are the same: run, pass the scheduler's signals on, ask for another start. ----
say() { echo "$(date '+%F %T') job $job: $*"; }

newest_checkpoint() {
  local all=("$run"/checkpoints/update-*[0-9])
  echo "${all[-1]}"
}

# Whichever signal comes, mpirun gets USR1, which it passes on. After TERM it would leave the ranks only a few seconds.
# shellcheck disable=SC2317 # called by the traps
ask_to_stop() {
  interrupted=yes
  [[ $1 != TERM && $1 != INT ]] || cancelled=$1
  say "$1: hetseq is asked to write a checkpoint and stop"
  [[ -z $pid ]] || kill -USR1 "$pid" 2>/dev/null
}

# Sets status. A signal ends bash's wait early, so it waits again until the command is known to have ended (127).
run_command() {
  local result
  trap 'ask_to_stop USR1' USR1
  trap 'ask_to_stop USR2' USR2
  trap 'ask_to_stop XCPU' XCPU
  trap 'ask_to_stop TERM' TERM
  trap 'ask_to_stop INT' INT
  "${command[@]}" &
  pid=$!
  while :; do
    interrupted=
    wait "$pid"
    result=$?
    ((result == 127)) && [[ $status ]] && break
    status=$result
    [[ $interrupted ]] || break
  done
}

# Whether another start would go on where this one stopped; if not, says why.
goes_on() {
  if ((status == 0)); then
    say "finished"
  elif [[ $cancelled ]]; then
    say "stopped by $cancelled, as a cancelled job is (status $status): submit it again to go on"
  elif ((status != 75 && status != 205)); then # 205: mpirun lost a host
    say "ended with status $status"
  elif ((status == 75)) && grep -qs '"stopped_by": *"the file STOP"' "$run/summary.json"; then
    say "stopped by $run/STOP: submit again to go on"
  elif [[ $(newest_checkpoint) == "$before" ]]; then
    say "status $status, and $run has no newer checkpoint than at the start (too little time, or another --save-dir): not started again"
  elif ((restarts >= max_requeues)); then
    say "status $status, and started again $restarts times already (max_requeues=$max_requeues): submit again to go on"
  else
    return 0
  fi
  return 1
}

if [[ $HETSEQ_JOB ]]; then # a file that sets any of the variables at the top
  [[ -r $HETSEQ_JOB ]] || { echo "HETSEQ_JOB: $PWD has no $HETSEQ_JOB"; exit 66; }
  # shellcheck source=/dev/null
  source "$(realpath "$HETSEQ_JOB")"
fi
if ((${#modules[@]})); then
  # shellcheck source=/dev/null
  type module &>/dev/null || source /etc/profile
  module load "${modules[@]}" || exit
fi
command=("${command[@]//\$HETSEQ_INPUTS/$HETSEQ_INPUTS}") # which the module has set
# A lost host is noticed after 10 s rather than 8 minutes. Ranks have 4 s from TERM to KILL rather than 2 s; more would hold up
# the end of every job in which a rank failed, by four times the setting.
export OMPI_MCA_oob_tcp_keepalive_time=5 OMPI_MCA_oob_tcp_keepalive_intvl=2 OMPI_MCA_oob_tcp_keepalive_probes=3
export OMPI_MCA_odls_base_sigkill_timeout=2

limit=''
start_of_job
if [[ $limit ]]; then
  left=$((limit > SECONDS ? limit - SECONDS : 1))
  command+=(--time-limit "$(printf '%02d:%02d:%02d' $((left / 3600)) $((left / 60 % 60)) $((left % 60)))")
fi
status='' cancelled='' pid='' before=$(newest_checkpoint)
say "start $((restarts + 1)) of at most $((max_requeues + 1)) on $HOSTNAME: ${command[*]}"
run_command
if goes_on; then
  requeue
fi
end_of_job
exit "$status"
