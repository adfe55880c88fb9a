# ---- The same for all job scripts: run, pass the scheduler's signals on, ask for another start. ----
# shellcheck shell=bash disable=SC2154 # the script's variables

say() { echo "$(date '+%F %T') job $job: $*"; }

newest_checkpoint() {
  local all=("$run"/checkpoints/update-*[0-9])
  echo "${all[-1]}"
}

# Whichever signal comes, mpirun gets USR1, which it passes on: after TERM it would leave the ranks a few seconds only.
# shellcheck disable=SC2317 # called by the traps
ask_to_stop() {
  interrupted=yes
  [[ $1 != TERM && $1 != INT ]] || cancelled=$1
  say "$1: hetseq is asked to write a checkpoint and stop"
  [[ -z $pid ]] || kill -USR1 "$pid" 2>/dev/null
}

# Sets status. A signal ends bash's wait early, so that it waits again, until the command is known to have ended (127).
# Where the signal comes as the command ends, bash may lose its status and say -1. It was asked to stop then, and whether
# it did `goes_on` sees from its checkpoint.
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
    if ((result < 0)); then
      while kill -0 "$pid" 2>/dev/null; do sleep 1; done
      status=75
      break
    fi
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
  elif ((status == 75)) && grep -qs '"stopped_by": *"--stop-after"' "$run/summary.json"; then
    say "stopped by --stop-after: submit again to go on"
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
