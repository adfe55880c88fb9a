#!/usr/bin/env bash
# A host's link is cut in the middle of training: the job ends within the stall timeout and 10 s and names the ranks that
# are lost, where Open MPI alone waits for minutes; on the host that is cut off nothing goes on.
source "$(dirname "$0")/common.sh"
make_images
cluster_up h1:slots=2 h2:slots=1
timeout_s=5
of_this_job="^$bin/hetseq train .*--save-dir $work/run\$"  # others run beside

ranks_left() { pgrep -fc "$of_this_job" || true; }

"$vcluster" run -np 3 -x OMP_NUM_THREADS=1 --mca mpi_yield_when_idle 1 "$bin/hetseq" train --task mnist \
  --data "$work/data/train*.h5" --max-sentences 8 --max-update 1000000 --log-interval 10 --threads 1 --cache-dir none \
  --stall-timeout "$timeout_s" --save-dir "$work/run" >"$work/log" 2>&1 &
job=$!
for _ in {1..600}; do
  ! grep -q 'update 50/' "$work/log" || break
  sleep 0.1
done
grep -q 'update 50/' "$work/log" || { cat "$work/log"; fail 'training did not begin'; }
(($(ranks_left) == 3)) || { pgrep -fa "hetseq train"; fail 'three ranks were to be found'; }

"$vcluster" partition h2
begin=$(date +%s.%N)
(sleep 60 && kill -KILL "$job") 2>/dev/null &
guard=$!
rc=0
wait "$job" || rc=$?
took=$(awk -v b="$begin" -v e="$(date +%s.%N)" 'BEGIN {printf "%.1f", e - b}')
kill "$guard" 2>/dev/null || true
echo "ended after $took s with exit code $rc:"
grep -A1 ' error ' "$work/log" || true
((rc != 0)) || { cat "$work/log"; fail "exit code $rc"; }
awk -v t="$took" -v m="$((timeout_s + 10))" 'BEGIN {exit !(t <= m)}' || { cat "$work/log"; fail "took $took s"; }
(($(grep -cE 'the job stalls: rank 2 on h2 was not heard from for [5-9]' "$work/log") == 1)) ||
  { cat "$work/log"; fail 'the lost rank is not named once'; }

for _ in {1..150}; do
  (($(ranks_left) > 0)) || break
  sleep 0.1
done
(($(ranks_left) == 0)) || { pgrep -fa "$of_this_job"; fail 'ranks go on'; }
