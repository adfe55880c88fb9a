#!/usr/bin/env bash
# What all job scripts share, tried with slurm.sh and uge.sh by themselves: what they do with signals and exit codes.
source "$(dirname "$0")/common.sh"
cd "$work"
mkdir bin
# shellcheck disable=SC2016
printf '#!/bin/bash\nif [[ $1 == show ]]; then printf "h1\nh2\n"; else echo "$@" >>requeued; fi\n' >bin/scontrol
# mpirun OPTION... COMMAND...: a host in the file `lost` answers nothing; with a file `cut-off`, after 12 updates, mpirun
# cannot start on all hosts. What a host alone is asked, it answers from its own folder, if it has one.
cat >bin/mpirun <<'EOF'
#!/bin/bash
echo "mpirun $*" >>mpiruns
if [[ $1 != --host && -e cut-off && -e run/updates ]] && (($(wc -l <run/updates) >= 12)); then exit 1; fi
while [[ $1 == -* ]]; do
  [[ $1 != --host ]] || ! grep -qsx "$2" lost || exit 1
  [[ ! -d on-$2 ]] || cd "on-$2"
  shift 2
done
exec "$@"
EOF
chmod 755 bin/scontrol bin/mpirun
cp "$here/fake/qstat" bin
export PATH=$work/bin:$PATH HETSEQ_JOB=settings

updates() { if [[ -e run/updates ]]; then wc -l <run/updates; else echo 0; fi; }
# The container is built from all that a build needs.
if git -C "$here" rev-parse &>/dev/null; then
  diff <(git -C "$here/../.." ls-files | cut -d/ -f1 | grep -vE '^\.|\.(md|cff)$|^(tests|LICENSE)$' | sort -u) \
    <(sed -nE 's|^    (\S+) /src/.*|\1|p' "$jobs/apptainer.def" | sort) || fail 'apptainer.def copies other files than these'
fi

# start SCRIPT [SIGNAL]: runs it in a process group of its own; SIGNAL reaches the script alone, at its tenth update.
start() {
  local pid signal=${2-} before
  before=$(updates)
  : >requeued
  setsid env --default-signal=INT bash "$jobs/$1" >log 2>&1 & # what runs behind `&` would ignore INT
  pid=$!
  if [[ $signal ]]; then
    until (($(updates) >= before + 10)); do sleep 0.02; done
    kill -"$signal" "$pid"
  fi
  rc=0
  wait "$pid" || rc=$?
}
new_run() { rm -rf run; settings settings "$@"; }
expect() { # RC REQUEUES: how the last start ended
  ((rc == $1)) || { cat log; fail "exit code $rc, expected $1"; }
  (($(wc -l <requeued) == $2)) || { cat log; fail "expected $2 requeues"; }
}

export SLURM_JOB_ID=7 SLURM_RESTART_COUNT
new_run 20
SLURM_RESTART_COUNT=0 start slurm.sh
expect 0 0
expect_log log 1 finished\ at
expect_updates run 20

new_run 40
start slurm.sh USR1
expect 75 1
expect_log requeued 1 'requeue 7'
expect_log log 1 'restart 1 of at most 20'
expect_log run/signals 1 USR1
SLURM_RESTART_COUNT=1 start slurm.sh
expect 0 0
expect_log log 1 'resumed at update'
expect_updates run 40
echo 'a warning requeues, the next start goes on'

new_run 40 max_requeues=3
SLURM_RESTART_COUNT=2 start slurm.sh USR1
expect 75 1
new_run 40 max_requeues=3
SLURM_RESTART_COUNT=3 start slurm.sh USR1
expect 75 0
expect_log log 1 'max_requeues=3'
new_run 40 "command+=(--no-checkpoint)"
SLURM_RESTART_COUNT=0 start slurm.sh USR1
expect 75 0
expect_log log 1 'no newer checkpoint'
new_run 40 'mkdir -p run' "echo '{\"stopped_by\": \"the file STOP\"}' >run/summary.json" # as hetseq does
start slurm.sh USR1
expect 75 0
expect_log log 1 'run/STOP'
echo 'neither beyond the bound, nor without progress, nor after STOP'

for signal in TERM INT; do
  new_run 1000
  start slurm.sh "$signal"
  expect 75 0
  expect_log run/signals 1 USR1
  expect_log log 1 "stopped by $signal, as a cancelled job is"
done
new_run 20 'command+=(--fail 74)'
start slurm.sh
expect 74 0
expect_log log 1 'ended with status 74'
new_run 20 'command+=(--every 5 --die 205@12)' restart_here=no # mpirun lost a host
start slurm.sh
expect 205 1
new_run 20 'command=(no-such-program)'
start slurm.sh
expect 127 0
HETSEQ_JOB=missing start slurm.sh
expect 66 0
expect_log log 1 "$work has no missing"
echo 'neither a cancelled job nor one that failed'

new_run 40 'command+=(--every 5 --die 137@12 --die 139@23)'
start slurm.sh
expect 0 0
expect_log log 2 'starts again here'
expect_log log 1 'resumed at update 10'
expect_log log 1 'resumed at update 20'
new_run 40 'command+=(--every 5 --die 71@12)' restart_here=no
start slurm.sh
expect 71 0
new_run 20 'command+=(--fail 139 --no-checkpoint)'
start slurm.sh
expect 139 0
expect_log log 1 'status 139, 2 times without a newer checkpoint'
new_run 20 'command+=(--fail 137 --no-checkpoint)'
start slurm.sh
expect 137 0
expect_log log 1 'status 137, 3 times without a newer checkpoint'
new_run 20 'command+=(--fail 137 --no-checkpoint --memory-kill memory-kills)' kernel_counters=memory-kills
start slurm.sh
expect 137 0
expect_log log 1 'status 137, 2 times without a newer checkpoint'
# Unlike faults are not the same one, but may not go on for ever.
new_run 40 'command+=(--every 20 --die 137@2 --die 139@3 --die 71@4)'
start slurm.sh
expect 0 0
expect_log log 3 'starts again here'
new_run 40 'command+=(--every 40 --die 137@2 --die 139@3 --die 71@4 --die 139@5 --die 71@6)'
start slurm.sh
expect 71 0
expect_log log 1 'status 71, and 5 starts in a row brought no newer checkpoint'
new_run 20 'command+=(--overwrite)'
start slurm.sh
expect 78 0
expect_log log 1 'the command has --overwrite'
[[ ! -e run ]] || fail 'it trained nevertheless'
new_run 160 'command+=(--every 5 --die 139@150)'
start slurm.sh USR1 # long before that
expect 75 1
start slurm.sh
expect 0 0
echo 'in place after a lost rank, and not for a fault that comes twice'

export SLURM_TASKS_PER_NODE='2(x2)' SLURM_JOB_NODELIST='h[1-2]'
in_hosts="'$here/trainer.sh' --save-dir run --max-update 40 --every 5 --die"
new_run 40 "command=(mpirun $in_hosts 205@12)"
echo h2 >lost
start slurm.sh
expect 0 0
expect_log log 1 'does not answer: h2'
expect_log mpiruns 1 'mpirun --host h1:2 /'
new_run 40 "command=(mpirun $in_hosts 137@12)" min_ranks=3
start slurm.sh
expect 137 1
expect_log log 1 '2 ranks are left (min_ranks=3)'
new_run 40 "command=(mpirun -np 4 $in_hosts 205@12)"
start slurm.sh
expect 205 1
expect_log log 1 'does not leave its hosts to mpirun'
# The ranks notice that h2 is gone before mpirun does; mpirun then cannot start there.
touch cut-off
new_run 40 "command=(mpirun $in_hosts 71@12)"
HOSTNAME=h1 start slurm.sh
expect 0 0
expect_log log 1 'status 1: starts again here'
expect_log log 1 'does not answer: h2'
rm lost cut-off
mkdir on-h2
new_run 20 "command=(mpirun '$here/trainer.sh' --save-dir run --max-update 20 --fail 137 --no-checkpoint" \
  '--memory-kill on-h2/memory-kills)' kernel_counters=memory-kills
HOSTNAME=h1 start slurm.sh
expect 137 0
expect_log log 1 'for want of memory on: h2.'
expect_log log 1 'status 137, 2 times without a newer checkpoint'
rm -r on-h2
new_run 20 "command=(mpirun '$here/trainer.sh' --save-dir run --max-update 20 --fail 1)" # the program's own
start slurm.sh
expect 1 0
expect_log log 1 'ended with status 1'
echo 'without a host that is lost, or through the queue'

# shellcheck disable=SC2016
new_run 20 'modules=(openmpi hetseq)' 'module() { echo "module $*"; [[ $2 != "$refused" ]]; }'
start slurm.sh
expect 0 0
expect_log log 1 'module load openmpi hetseq'
new_run 20 'modules=(openmpi)' 'module() { return 1; }'
start slurm.sh
expect 1 0
[[ ! -e run ]] || fail 'trained without its modules'
new_run 20 'command=(env)'
start slurm.sh
for setting in oob_tcp_keepalive_{time=5,intvl=2,probes=3} odls_base_sigkill_timeout=0; do
  expect_log log 1 "OMPI_MCA_$setting"
done
# The module tells where the example inputs are, after the command was written down.
# shellcheck disable=SC2016
new_run 20 'modules=(hetseq)' 'module() { HETSEQ_INPUTS=/site/inputs; }' 'command=(echo "trains \$HETSEQ_INPUTS/bert.cfg")'
start slurm.sh
expect 0 0
grep -qx 'trains /site/inputs/bert.cfg' log || { cat log; fail 'the module'"'"'s folder of inputs is not known'; }
echo 'modules and what mpirun is told'

# Grid Engine: exit status 99, a time limit for hetseq 60 s below h_rt, a count of its own.
export JOB_ID=8 FAKE_H_RT=3690
new_run 40
start uge.sh USR2
expect 99 0
expect_log log 1 '--time-limit 01:00:'
expect_log hetseq-8.requeues 1 '1 8'
start uge.sh
expect 0 0
expect_log log 1 'chain 8'
expect_updates run 40
[[ ! -e hetseq-8.requeues ]] || fail 'the counter outlived the job'
new_run 40
FAKE_H_RT=7200000 start uge.sh
expect 0 0
expect_log log 1 '--time-limit 83-07:5'
# Each task of an array has a count of its own.
new_run 40
SGE_TASK_ID=3 start uge.sh USR2
expect 99 0
expect_log hetseq-8.3.requeues 1 '1 8.3'
SGE_TASK_ID=undefined start uge.sh
expect 0 0
expect_log hetseq-8.3.requeues 1 '1 8.3'
rm hetseq-8.3.requeues
new_run 400
NHOSTS=2 SGE_TASK_ID=3 start uge.sh USR2
expect 75 0
expect_log log 1 'submit task 3 again'
new_run 100 margin=3688
for ((starts = 1; ; ++starts)); do
  start uge.sh
  ((rc == 99)) || break
done
expect 0 0
((starts > 2)) || fail "a time limit of 2 s was reached $((starts - 1)) times in 5 s"
expect_updates run 100
new_run 400 margin=3688 max_requeues=1
start uge.sh
expect 99 0
start uge.sh
expect 75 0
FAKE_H_RT='' start uge.sh USR1
expect 99 0
expect_log log 1 'no h_rt'
expect_log log 0 '--time-limit'
new_run 400
FAKE_STATE=dr start uge.sh USR2
expect 75 0
expect_log log 1 'deleted by qdel'
# Over several hosts a copy of the job goes on, which is held until it can find its count.
printf '#!/bin/bash\necho "Your job 9 (\"hetseq\") has been submitted"\n' >bin/qresub
# shellcheck disable=SC2016
printf '#!/bin/bash\necho "$@ with $(<hetseq-9.requeues)" >>requeued\n' >bin/qrls
chmod 755 bin/qresub bin/qrls
new_run 40 max_requeues=1
NHOSTS=2 start uge.sh USR2
expect 75 1
expect_log requeued 1 '9 with 1 8'
[[ ! -e hetseq-8.requeues ]] || fail 'the counter outlived the job'
JOB_ID=9 NHOSTS=2 start uge.sh USR2
expect 75 0
expect_log log 1 'max_requeues=1'
expect_log log 1 'chain 8'
[[ ! -e hetseq-9.requeues ]] || fail 'the counter outlived the job'
new_run 400
printf '#!/bin/bash\nexit 1\n' >bin/qresub
NHOSTS=2 start uge.sh USR2
expect 99 0
expect_log hetseq-8.requeues 1 1
echo 'Grid Engine: time limit, 99 or a copy, bound, qdel'
