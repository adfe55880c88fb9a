#!/usr/bin/env bash
# Unlike hosts on one machine: how fast --balance auto and equal train on virtual hosts with CPU quotas, against the sum
# of what the hosts reach alone. Needs root, iproute2, and a machine that is otherwise idle.
set -euo pipefail
source "$(dirname "$0")/../common.sh"

usage='usage: jobs/scaling/heterogeneity.sh [mnist|bert] [BATCH] [UPDATES] [QUOTA...]
  default: mnist 2048 30 1.0 0.25   (quotas: cores of each host; their sum must fit the machine)
environment:
  HETSEQ_TEST_DATA   folder with bert/*.hdf5 (default ../shared/data)
  ROUNDS             repetitions, equal and auto in turns (default 1)'
[[ ${1-} != -h && ${1-} != --help ]] || { echo "$usage"; exit 0; }
task=${1:-mnist}
batch=${2:-2048}
updates=${3:-30}
quotas=("${@:4}")
((${#quotas[@]})) || quotas=(1.0 0.25)
rounds=${ROUNDS:-1}
[[ $task =~ ^(mnist|bert)$ && $batch$updates$rounds =~ ^[0-9]+$ ]] || { echo "$usage" >&2; exit 64; }

hetseq=build/cpu/bin/hetseq
vcluster=tests/cluster/vcluster
results=build/scaling/heterogeneity
work=$(mktemp -d)
trap '"$vcluster" down; rm -rf "$work"' EXIT
((EUID == 0)) || { echo 'virtual hosts need root' >&2; exit 69; }

set_up() {
  jobs/setup.sh
  configure_and_build cpu hetseq
  mkdir -p "$results"
  case $task in
    mnist)
      prepare_fashion_mnist
      options=(--task mnist --data 'data/fashion-mnist/train*.h5' --max-sentences 128)
      ;;
    bert)
      options=(--task bert --model-config mini --max-sentences 16
        --data "$(realpath -m "${HETSEQ_TEST_DATA:-../shared/data}")/bert/*.hdf5")
      ;;
  esac
  options+=(--threads 1 --log-interval 10 --cache-dir "$work/cache" --overwrite)
}

hosts_up() {
  local specs=() i
  for i in "${!quotas[@]}"; do specs+=("h$((i + 1)):cpu=${quotas[i]},slots=1"); done
  "$vcluster" down
  "$vcluster" up "${specs[@]}"
}

# rate RUN: samples a second at the median update, warm-up and calibration left out.
rate() { python3 -c 'import json,sys; s=json.load(open(sys.argv[1]+"/summary.json")); print(1000*s["samples"]/s["updates"]/s["step_ms"]["median"])' "$1"; }

# alone HOST QUOTA: that host's rate with its part of the batch.
alone() {
  local part
  part=$(awk -v b="$batch" -v q="$2" -v s="$(IFS=+; echo "${quotas[*]}" | awk '{n = split($0, a, "+"); for (i = 1; i <= n; i++) t += a[i]; print t}')" 'BEGIN {printf "%d", b * q / s + 0.5}')
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=1 "$vcluster" exec "$1" "$hetseq" train "${options[@]}" \
    --batch-size "$part" --max-update "$((updates / 2 > 20 ? updates / 2 : 20))" --save-dir "$work/$1" >"$work/$1.log" 2>&1 ||
    { cat "$work/$1.log" >&2; return 1; }
  rate "$work/$1"
}

# together BALANCE ROUND
together() {
  local run
  run=$results/$task-$batch-$(IFS=-; echo "${quotas[*]}")-$1-$2
  "$vcluster" run -np "${#quotas[@]}" -x OMP_NUM_THREADS=1 "$hetseq" train "${options[@]}" --batch-size "$batch" \
    --max-update "$updates" --balance "$1" --save-dir "$run" >"$work/log" 2>&1 || { cat "$work/log" >&2; return 1; }
  rate "$run"
}

set_up
export OMP_NUM_THREADS=1
say "$task, global batch $batch, hosts of ${quotas[*]} cores, $updates updates"
hosts_up
bound=0
for i in "${!quotas[@]}"; do
  of_host=$(alone "h$((i + 1))" "${quotas[i]}")
  printf 'h%d (%s cores) alone: %.1f samples/s\n' $((i + 1)) "${quotas[i]}" "$of_host"
  bound=$(awk -v a="$bound" -v b="$of_host" 'BEGIN {print a + b}')
done
for ((round = 1; round <= rounds; ++round)); do
  equal=$(together equal "$round")
  auto=$(together auto "$round")
  awk -v e="$equal" -v a="$auto" -v b="$bound" -v t="$task" -v n="$batch" -v h="${quotas[*]}" 'BEGIN {
    printf "| %s | %s | %s | %.1f | %.1f | %.2f | %.1f | %.1f %% |\n", t, n, h, e, a, a / e, b, 100 * a / b }'
done
echo '(task, batch, cores, equal, auto, auto / equal, sum of the hosts alone, auto / sum; samples a second)'
