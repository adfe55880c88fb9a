#!/usr/bin/env bash
# TensorBoard itself reads what a run writes for it. Its Python: HETSEQ_TENSORBOARD_PYTHON, or python3.
source "$(dirname "$0")/common.sh"
python=${HETSEQ_TENSORBOARD_PYTHON:-python3}
"$python" -c 'import tensorboard' 2>/dev/null || skip "$python has no tensorboard; the event files' bytes are tested without it"

make_images
run_ranks 2 "$bin/hetseq" train --task mnist --data "$work/data/train*.h5" --valid-data "$work/data/t10k*.h5" \
  --batch-size 32 --max-sentences 16 --threads 1 --max-update 30 --log-interval 4 --valid-interval 10 \
  --cache-dir "$work/cache" --save-dir "$work/run"
expect_ok run
"$python" tests/reference/read_events.py "$work/run" >"$work/log" 2>&1 || { cat "$work/log"; fail 'other numbers'; }
grep 'curves of' "$work/log" || { cat "$work/log"; fail 'nothing was compared'; }
