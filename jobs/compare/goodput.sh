#!/usr/bin/env bash
# What jobs/scaling/goodput.sh mnist measures, of PyTorch's MNIST example under torchrun: a rank is killed again and again, and
# torchrun starts all anew from the newest checkpoint (docs/faults.md).
set -euo pipefail
shopt -s inherit_errexit

usage='usage: jobs/compare/goodput.sh
Needs build/python (jobs/setup.sh --python).
environment:
  EVERY    seconds between kills, on average (60)
  MINUTES  of the run (15)
  RANKS    (2)
  SAVE     seconds between checkpoints (2.4)'
[[ ${1-} != -h && ${1-} != --help ]] || { echo "$usage"; exit 0; }
(($# == 0)) || { echo "$usage" >&2; exit 64; }
source "$(dirname "$0")/../common.sh"
every=${EVERY:-60} minutes=${MINUTES:-15} ranks=${RANKS:-2}
if [[ ! $every$minutes$ranks =~ ^[0-9]+$ ]]; then echo "$usage" >&2; exit 64; fi
need_built_python
prepare_fashion_mnist
work=$PWD/build/compare/goodput
rm -rf "$work"
mkdir -p "$work"
export OMP_NUM_THREADS=1 GLOO_SOCKET_IFNAME=lo
setsid "$python" -m torch.distributed.run --standalone --nproc-per-node "$ranks" --max-restarts 100000 \
  jobs/compare/restarts_ddp.py "$PWD/data/fashion-mnist/train*.h5" "$work" $((256 / ranks)) "${SAVE:-2.4}" >"$work/log" 2>&1 &
job=$!
trap 'kill -TERM -- "-$job" 2>/dev/null || true' EXIT
begin=$EPOCHREALTIME
kills=$(kill_now_and_then "$every" $((60 * minutes)) "$job" "restarts_ddp.py .* $work ")
seconds=$(awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN {print b - a}')
kill -TERM -- "-$job" 2>/dev/null || true
wait "$job" || true
trap - EXIT
python3 - "$work" "$seconds" "$kills" <<'PY'
import pathlib, sys
work, seconds, kills = pathlib.Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
kept, lost = {}, 0.0
for line in (work / "updates").read_text().splitlines():
    number, took = line.split()
    lost += kept.get(int(number), 0)  # computed again
    kept[int(number)] = float(took)
print(f"{kills} kills: {100 * sum(kept.values()) / seconds:.1f} % of {seconds:.0f} s in {len(kept)} updates that were kept, "
      f"{100 * lost / seconds:.1f} % in updates that were computed again")
PY
