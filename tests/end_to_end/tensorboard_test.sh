#!/usr/bin/env bash
# TensorBoard itself reads what a run writes for it. Its Python: HETSEQ_TENSORBOARD_PYTHON, or python3.
source "$(dirname "$0")/common.sh"
python=${HETSEQ_TENSORBOARD_PYTHON:-python3}
"$python" -c 'import tensorboard' 2>/dev/null || skip "$python has no tensorboard; the event files' bytes are tested without it"

make_images
# train UPDATES
train() {
  run_ranks 2 "$bin/hetseq" train --task mnist --data "$work/data/train*.h5" --valid-data "$work/data/t10k*.h5" \
    --batch-size 32 --max-sentences 16 --threads 1 --max-update "$1" --log-interval 4 --valid-interval 10 \
    --cache-dir "$work/cache" --save-dir "$work/run" --save-interval-updates 13
}
train 22
expect_ok run
# Continued from 13, as after a crash: the numbers of 16, 20 and 22 are the second start's.
rm -r "$work/run/checkpoints/update-00000022"
printf 'torn' >>"$(compgen -G "$work/run/tensorboard/*tfevents*")"
train 30
expect_ok continued
(($(compgen -G "$work/run/tensorboard/*tfevents*" | wc -l) == 2)) || fail 'a start wrote no file of its own'
"$python" tests/reference/read_events.py "$work/run" >"$work/log" 2>&1 || { cat "$work/log"; fail 'other numbers'; }
grep 'curves of' "$work/log" || { cat "$work/log"; fail 'nothing was compared'; }
