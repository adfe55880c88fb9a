# ---- The same for all job scripts: run, pass the scheduler's signals on, start again here or ask for another start. ----
# shellcheck shell=bash disable=SC2154 # the script's variables

say() { echo "$(date '+%F %T') job $job: $*"; }

newest_checkpoint() {
  local all=("$run"/checkpoints/update-*[0-9])
  echo "${all[-1]}"
}

# Whichever signal comes, mpirun gets USR1, which it passes on: after TERM it would leave the ranks a few seconds only.
# shellcheck disable=SC2317 # called by the traps
ask_to_stop() {
  interrupted=yes asked=yes
  [[ $1 != TERM && $1 != INT ]] || cancelled=$1
  say "$1: hetseq is asked to write a checkpoint and stop"
  [[ -z $pid ]] || kill -USR1 "$pid" 2>/dev/null
}

# Puts at_hosts into `started`, in place of a file of hosts: mpirun would start its daemons on those too.
at_some_hosts() {
  local words=("${started[@]}") word
  started=("${words[0]}" --host "$(IFS=,; echo "${at_hosts[*]}")")
  for ((word = 1; word < ${#words[@]}; ++word)); do
    if [[ ${words[word]} =~ ^--?(hostfile|machinefile)$ ]]; then
      word=$((word + 1))
    else
      started+=("${words[word]}")
    fi
  done
}

# time_text SECONDS: as hetseq takes a time, of 999 days at most.
time_text() {
  local left=$(($1 < 999 * 86400 ? $1 : 999 * 86400)) days=''
  ((left < 1000 * 3600)) || days=$((left / 86400))- left=$((left % 86400))
  printf '%s%02d:%02d:%02d' "$days" $((left / 3600)) $((left / 60 % 60)) $((left % 60))
}

# Sets status. A signal ends bash's wait early, so that it waits again, until the command is known to have ended (127).
# Where the signal comes as the command ends, bash may lose its status and say -1. It was asked to stop then, and whether
# it did `goes_on` sees from its checkpoint.
run_command() {
  local result left within=() started
  trap 'ask_to_stop USR1' USR1
  trap 'ask_to_stop USR2' USR2
  trap 'ask_to_stop XCPU' XCPU
  trap 'ask_to_stop TERM' TERM
  trap 'ask_to_stop INT' INT
  if [[ $limit ]]; then
    left=$((limit > SECONDS ? limit - SECONDS : 1))
    within=(--time-limit "$(time_text "$left")")
  fi
  started=("${command[@]}" "${within[@]}")
  ((${#at_hosts[@]} == 0)) || at_some_hosts
  if [[ $asked ]]; then # between two starts
    status=75
    return
  fi
  say "${started[*]}"
  # A group of its own: signals to the script's group, as of Ctrl-C, are passed on as USR1 and not met by mpirun itself.
  set -m
  "${started[@]}" </dev/null &
  pid=$!
  set +m
  [[ ! $asked ]] || kill -USR1 "$pid"
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

# Whether mpirun is to start again at once, in this job: a device or its link failed (71), a signal ended a rank, mpirun lost a
# host (205), or it could not start on one (1, which a program may end with, too). The same fault that comes twice without a
# checkpoint between is one of the program or its data, and so is a fifth start in a row that brings none. Status 137 may be
# anybody's doing, and is believed the third time, unless the kernel has killed a process for want of memory meanwhile.
starts_again_here() {
  local most=2 left_out='' out_of_memory=() may_start=yes
  ((status != 1)) || [[ $(history_of_run) == "$history_before" ]] || return 1 # it trained: the program's own status
  if [[ $cancelled || $asked || $restart_here == no ]] || ((status != 1 && status != 71 && status <= 128)); then
    return 1
  fi
  [[ $(newest_checkpoint) == "$before_start" ]] || faults=0 fruitless=0
  ((status == fault)) || faults=0
  fault=$status faults=$((faults + 1)) fruitless=$((fruitless + 1))
  use_hosts_that_answer || may_start=no
  if ((status == 137)); then
    if (($(memory_kills) > kills_before)); then
      out_of_memory=("$HOSTNAME" "${out_of_memory[@]}")
    fi
    if ((${#out_of_memory[@]})); then
      say "the kernel has killed a process for want of memory on: ${out_of_memory[*]}. Give the job more of it there, or its ranks less to hold (smaller micro-batches, fewer ranks on a host)"
    else
      most=3
    fi
  fi
  [[ $may_start == yes ]] || return 1
  if [[ $left_out ]]; then
    faults=0
  elif ((status == 1)); then
    return 1
  fi
  if ((faults >= most)); then
    say "status $status, $faults times without a newer checkpoint: not started again here"
    return 1
  fi
  if ((fruitless >= 5)); then
    say "status $status, and $fruitless starts in a row brought no newer checkpoint: not started again here"
    return 1
  fi
}

# What hetseq tells of the run's starts, each of which changes it.
history_of_run() { cksum 2>/dev/null <"$run/starts.json"; }

# How many processes the kernel has killed for want of memory on this host.
memory_kills() { tell_kills | kills_told; }
tell_kills() { "${telling_kills[@]}" 2>/dev/null || :; }
kills_told() { awk '$1 == "oom_kill" {kills = $2} END {print kills + 0}'; }

# Prints the memory_kills of another host, where the command's mpirun starts a process there at the second try at the latest.
ask_host() {
  local told
  told=$(start_on "$1" || start_on "$1") && kills_told <<<"$told"
}
start_on() { timeout -k 5 "$answer_within" "${command[0]}" -np 1 --host "$1" "${telling_kills[@]}" </dev/null 2>/dev/null; }

# Leaves out hosts that do not answer. Fails where that leaves too few ranks, or the command names its ranks or hosts itself:
# the job then goes through the queue. Where no other host answers than this one, the question may be wrong: all are used then,
# until a start on them fails for that. Sets left_out where other hosts are left out than before, and adds to out_of_memory
# the hosts whose kernel has killed a process for want of memory since they were last asked.
use_hosts_that_answer() {
  local all answers there host slots kills answering=() lost=() ranks=0 before="${at_hosts[*]}"
  mapfile -t all < <(hosts_of_job 2>/dev/null)
  ((${#all[@]} > 1)) || return 0
  if [[ ${command[0]##*/} != mpirun ]]; then # whether srun failed for a host's loss, the next start's failure tells
    ((status != 1 || HETSEQ_RESTARTED == 0)) || host_lost=yes
    return 0
  fi
  answers=$(for host in "${all[@]%% *}"; do { is_here "$host" || { kills=$(ask_host "$host") && echo "$host $kills"; }; } & done; wait)
  there=$(cut -d ' ' -f 1 <<<"$answers")
  while read -r host kills; do
    ((kills <= ${kills_on[$host]:-$kills})) || out_of_memory+=("$host")
    kills_on[$host]=$kills
  done < <(grep . <<<"$answers")
  if [[ ! $there ]] && ((status != 205 && (status != 1 || HETSEQ_RESTARTED == 0))); then
    return 0
  fi
  for host in "${all[@]}"; do
    slots=${host#* } host=${host%% *}
    if is_here "$host" || grep -qxF "$host" <<<"$there"; then
      answering+=("$host:$slots")
      ranks=$((ranks + slots))
    else
      lost+=("$host")
    fi
  done
  if ((${#lost[@]} == 0)); then
    ((${#at_hosts[@]} == 0)) || at_hosts=("${answering[@]}") # one that was away is back
    return 0
  fi
  host_lost=yes
  say "does not answer: ${lost[*]}"
  if ((ranks == 0 || ranks < min_ranks)); then
    say "$ranks ranks are left (min_ranks=$min_ranks): not started again here"
    return 1
  fi
  if [[ " ${command[*]} " =~ \ --?(n|np|c|N|npernode|host|H|map-by|rf|rankfile)\  || " ${command[*]} " == *' : '* ]]; then
    say "the command does not leave its hosts to mpirun: not started again here"
    return 1
  fi
  at_hosts=("${answering[@]}")
  [[ ${at_hosts[*]} == "$before" ]] || left_out=yes
}
is_here() { [[ ${1%%.*} == "${HOSTNAME%%.*}" || $1 == localhost ]]; }

# 75: stopped as asked. 205: mpirun lost a host, whose loss may have other ends as well. A rank that failed while it stopped
# would have been started again here at any other time.
may_go_through_queue() {
  ((status == 75 || status == 205)) || { [[ $host_lost || $asked ]] && ((status == 71 || status > 128)); } ||
    { [[ $host_lost ]] && ((status == 1)); }
}

# Whether another start would go on where this one stopped; if not, says why.
goes_on() {
  if ((status == 0)); then
    say "finished"
  elif [[ $cancelled ]]; then
    say "stopped by $cancelled, as a cancelled job is (status $status): submit it again to go on"
  elif ! may_go_through_queue; then
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

: "${restart_here:=yes}" "${min_ranks:=1}" "${answer_within:=20}" "${kernel_counters:=/proc/vmstat}"
declare -F hosts_of_job >/dev/null || hosts_of_job() { :; }

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
# A lost host is noticed after 10 s rather than 8 minutes. Where a rank failed, the others are killed at once: they would wait
# four times this setting, and the next start goes on from the newest checkpoint. A stop that is asked for comes as USR1.
export OMPI_MCA_oob_tcp_keepalive_time=5 OMPI_MCA_oob_tcp_keepalive_intvl=2 OMPI_MCA_oob_tcp_keepalive_probes=3
export OMPI_MCA_odls_base_sigkill_timeout=0

# A later start of this job, here or through the queue, would remove what an earlier one has saved.
begins_anew() {
  local word
  for word in "${command[@]}"; do
    [[ $word != *--overwrite* ]] || return 0
    # Wrappers and configurations; `-I` leaves programs out.
    if [[ -f $word && -r $word ]] && head -c 100000 "$word" |
      grep -qIE -e '--overwrite|^[[:space:]]*overwrite[[:space:]]*=[[:space:]]*(true|yes|on|1)'; then return 0; fi
  done
  return 1
}

limit='' at_hosts=() # hosts with their slots, where not all of the job's
telling_kills=(sh -c "grep '^oom_kill ' '$kernel_counters' || :")
declare -A kills_on=() # other hosts' memory_kills when they were last asked
start_of_job
export HETSEQ_RESTARTED=0 HETSEQ_REQUEUED=$restarts
cancelled='' asked='' host_lost='' before=$(newest_checkpoint) fault=0 faults=0 fruitless=0
if begins_anew; then
  say "the command has --overwrite, by which a start that goes on after a failure would remove what this job has saved: leave it out, and where the run is to begin anew, remove $run before you submit"
  exit 78
fi
say "start $((restarts + 1)) of at most $((max_requeues + 1)) on $HOSTNAME"
while :; do
  status='' pid='' before_start=$(newest_checkpoint) kills_before=$(memory_kills) history_before=$(history_of_run)
  run_command
  starts_again_here || break
  [[ ! $asked ]] || break # while it looked at the hosts
  HETSEQ_RESTARTED=$((HETSEQ_RESTARTED + 1)) # the mpirun before has ended: its lease is of nobody
  say "status $status: starts again here (restart $HETSEQ_RESTARTED in this job)"
done
if goes_on; then
  requeue
fi
end_of_job
exit "$status"
