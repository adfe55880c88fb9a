#!/usr/bin/env bash
# Batches cut by measured speed: the result is that of an equal cut, measured speeds are kept for the next run, and a
# recorded run is replayed bit for bit.
source "$(dirname "$0")/common.sh"
make_images
train=("$bin/hetseq" train --task mnist --data "$work/data/train*.h5" --batch-size 32 --max-sentences 16 --threads 1
  --max-update 12 --optimizer adam --lr 0.001 --log-interval 1 --cache-dir "$work/cache")

run_ranks 2 "${train[@]}" --precision fp64 --save-dir "$work/auto"
expect_ok auto
grep -q 'measuring the speed of 2 of 2 ranks' "$work/log" || { cat "$work/log"; fail 'nothing was measured'; }
grep -Eq '% of the bound reached' "$work/log" || { cat "$work/log"; fail 'the report does not compare with the bound'; }
run_ranks 2 "${train[@]}" --precision fp64 --balance equal --save-dir "$work/equal"
expect_ok equal
"$bin/compare_models" "$work/auto/model.safetensors" "$work/equal/model.safetensors" 1e-12 || fail 'auto gives other parameters than equal'

# Two ranks of one machine are alike: one file serves both, and the second run measures nothing.
run_ranks 2 "${train[@]}" --precision fp64 --max-update 1 --save-dir "$work/second"
expect_ok 'second run'
! grep -q 'measuring' "$work/log" || { cat "$work/log"; fail 'measured again'; }

[[ $(json "$work/auto/allocations.json" ranks) == 2 ]] || fail 'no allocations were recorded'
run_ranks 2 "${train[@]}" --precision fp64 --balance "file:$work/auto/allocations.json" --save-dir "$work/replayed"
expect_ok replayed
"$bin/compare_models" "$work/auto/model.safetensors" "$work/replayed/model.safetensors" 0 || fail 'the replayed run differs'
cmp "$work/auto/allocations.json" "$work/replayed/allocations.json" || fail 'other allocations were recorded'

# A replay has the micro-batches of the recorded run.
sed 's/"micro_batches":\[16,16\]/"micro_batches":[16,8]/' "$work/auto/allocations.json" >"$work/halved.json"
run_ranks 2 "${train[@]}" --balance "file:$work/halved.json" --dry-run
expect_ok halved
grep -Eq '^1 .* 8 +16 +50 %' "$work/log" || { cat "$work/log"; fail 'the recorded micro-batch is not taken'; }

# A rank that slows down loses work. That run, too, is replayed bit for bit; continued, it starts with its last cut, and
# with other capacities it is cut anew.
export HETSEQ_FAULT='1:computing:*:stall=0.4'
run_ranks 2 "$bin/hetseq_faulty" "${train[@]:1}" --max-update 30 --save-dir "$work/moved"
unset HETSEQ_FAULT
expect_ok moved
(($(json "$work/moved/summary.json" balance.reallocations) > 0)) || { cat "$work/log"; fail 'the shares did not follow'; }
run_ranks 2 "${train[@]}" --max-update 30 --balance "file:$work/moved/allocations.json" --save-dir "$work/moved_again"
expect_ok 'moved again'
"$bin/compare_models" "$work/moved/model.safetensors" "$work/moved_again/model.safetensors" 0 || fail 'the replayed run differs'
cmp "$work/moved/allocations.json" "$work/moved_again/allocations.json" || fail 'other allocations were recorded'

run_ranks 2 "${train[@]}" --max-update 32 --save-dir "$work/moved"
expect_ok 'continued'
! grep -q 'measuring' "$work/log" || { cat "$work/log"; fail 'measured again'; }
last=$(json "$work/moved_again/summary.json" ranks | python3 -c 'import ast, sys; print(ast.literal_eval(sys.stdin.read())[1]["share"])')
grep -Eq "^1 .* $last +[0-9.]+ %" "$work/log" || { cat "$work/log"; fail "the start table does not show rank 1's share of $last"; }
run_ranks 2 "${train[@]}" --max-update 34 --max-sentences 0=16,1=0 --save-dir "$work/moved"
expect_ok 'continued with other capacities'
grep -q 'measuring the speed of [12] of 2 ranks' "$work/log" || { cat "$work/log"; fail 'an old speed was taken'; }
[[ $(json "$work/moved/allocations.json" allocations | tail -c 12) == *'[32, 0]}]' ]] || { cat "$work/moved/allocations.json"; fail 'a rank of no capacity has work'; }

run_ranks 3 "${train[@]}" --balance "file:$work/auto/allocations.json"
expect_error 78 'is of 2 ranks'
run_ranks 1 "${train[@]}" --balance fair
expect_error 78 "'fair' is not one of auto, declared, equal, file:PATH"
