#!/usr/bin/env bash
# Stands in for `hetseq train` where a job script is tested alone: counts updates in RUN/updates, 20 a second on any
# machine, stops with 75 and a checkpoint when asked to, goes on from the newest one, and ends with 0; with --fail it ends
# with CODE after 10 updates, with --die once with CODE at an update. --every: updates between checkpoints. --memory-kill:
# before it fails it counts a kill in FILE, as the kernel does in /proc/vmstat.
# usage: trainer.sh --save-dir RUN --max-update N [--time-limit HH:MM:SS] [--fail CODE] [--die CODE@UPDATE]... [--every N]
#        [--no-checkpoint] [--memory-kill FILE]
set -euo pipefail
limit=0 fail='' writes=yes deaths=() every=0 kills=''
while (($#)); do
  case $1 in
    --save-dir) run=$2; shift ;;
    --max-update) last=$2; shift ;;
    --time-limit) limit=$(awk -F: '{print 3600 * $1 + 60 * $2 + $3}' <<<"$2"); shift ;;
    --fail) fail=$2; shift ;;
    --die) deaths+=("$2"); shift ;;
    --every) every=$2; shift ;;
    --no-checkpoint) writes=no ;;
    --memory-kill) kills=$2; shift ;;
    *) echo "trainer.sh: unknown $1" >&2; exit 64 ;;
  esac
  shift
done
mkdir -p "$run/checkpoints"
echo "chain ${HETSEQ_CHAIN-none}"
newest=$(find "$run/checkpoints" -name 'update-*' | sort | tail -n 1)
update=$((10#0${newest##*update-}))
[[ -z $newest ]] || echo "resumed at update $update"
count_kill() {
  local before
  [[ $kills ]] || return 0
  read -r _ before 2>/dev/null <"$kills" || before=0
  echo "oom_kill $((before + 1))" >"$kills"
}
checkpoint() { [[ $writes == no ]] || mkdir -p "$run/checkpoints/$(printf 'update-%08d' "$update")"; }

first=$update
begin=${EPOCHREALTIME/[.,]/} # microseconds, read without a subshell: a signal to the whole group would end it and this script
stop=''
for signal in USR1 USR2 XCPU TERM; do
  # shellcheck disable=SC2064 # each trap names its own signal
  trap "stop=$signal; echo $signal >>'$run/signals'" "$signal"
done
while ((update < last)); do
  sleep 0.05 || true
  # As hetseq, it makes an update first: a busy machine may take the whole limit for the start.
  ((limit == 0 || SECONDS < limit || update == first)) || stop='the time limit'
  if [[ $stop ]]; then
    checkpoint
    echo "stopped by $stop after update $update"
    exit 75
  fi
  now=${EPOCHREALTIME/[.,]/}
  due=$((first + (now - begin) / 50000))
  while ((update < due && update < last)); do
    echo $((++update)) >>"$run/updates"
    ((every == 0 || update % every)) || checkpoint
    for death in "${deaths[@]}"; do
      if ((update == ${death#*@})) && [[ ! -e $run/died-$death ]]; then
        touch "$run/died-$death"
        exit "${death%@*}"
      fi
    done
  done
  ((update < 10)) || [[ -z $fail ]] || { checkpoint; count_kill; exit "$fail"; }
done
checkpoint
echo "finished at update $update"
