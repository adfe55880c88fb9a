#!/usr/bin/env bash
# hetseq plan: the published runs' descriptions, JSON, errors that name a line, and a plan from a real run.
source "$(dirname "$0")/common.sh"

# Shown beside each other: fitted and predicted rows with their residuals.
for task in translation bert mnist; do
  "$bin/hetseq" plan "inputs/plans/$task.cfg" >"$work/log" || { cat "$work/log"; fail "plan $task"; }
  (($(grep -c 'fitted$' "$work/log") == 3)) || { cat "$work/log"; fail "$task: three fitted rows"; }
  (($(grep -c 'predicted$' "$work/log") == 3)) || { cat "$work/log"; fail "$task: three predicted rows"; }
  grep -q '% of the bound' "$work/log" || fail "$task: no efficiency"
done
"$bin/hetseq" plan inputs/plans/mnist.cfg --json >"$work/plan.json" || fail 'plan mnist --json'
[[ $(json "$work/plan.json" ranks) == 32 ]] || fail 'mnist has 32 ranks'

# Two like nodes without communication: half the batch each, twice the rate.
cat >"$work/two.cfg" <<CLUSTER
[nodes like]
count = 2
[device like]
unit-ms = 2
[job]
batch = 100
updates = 36
CLUSTER
"$bin/hetseq" plan "$work/two.cfg" --json >"$work/plan.json" || fail "plan two.cfg"
[[ $(json "$work/plan.json" step_ms) == 100.0 ]] || { cat "$work/plan.json"; fail "two like nodes"; }
[[ $(json "$work/plan.json" efficiency) == 1.0 ]] || fail "nothing is lost"
run_ranks 2 "$bin/hetseq" plan "$work/two.cfg"
expect_ok "plan among ranks"
(($(grep -c '^36 updates take 0:04' "$work/log") == 1)) || { cat "$work/log"; fail "ranks print once"; }

# Layouts of a model whose layers are described: the fastest that fits first, and its workers hold all layers.
for model in resnet152 vgg19; do
  "$bin/hetseq" plan "inputs/plans/hetpipe-$model.cfg" >"$work/log" || { cat "$work/log"; fail "plan hetpipe-$model"; }
  grep -q '^one worker of each host  *16 ' "$work/log" || { cat "$work/log"; fail "$model: no table of layouts"; }
  "$bin/hetseq" plan "inputs/plans/hetpipe-$model.cfg" --json >"$work/plan.json" || fail "plan hetpipe-$model --json"
  python3 - "$work/plan.json" <<'CHECK' || fail "$model: the layouts in JSON"
import json, sys
plan = json.load(open(sys.argv[1]))
times = [layout["update_ms"] for layout in plan["layouts"] if not layout["why_not"]]
assert len(times) > 5 and times == sorted(times), times
workers = plan["best_layout"]["workers"]
assert sum(worker["units"] for worker in workers) == plan["batch"] == 512
layers = {worker["stages"][-1]["layers"][1] for worker in workers}
assert layers == {52} or layers == {19}, layers
CHECK
done
sed 's/^micro-batches.*/micro-batches = 24/' inputs/plans/hetpipe-vgg19.cfg >"$work/uneven.cfg"
rc=0; "$bin/hetseq" plan "$work/uneven.cfg" 2>"$work/log" || rc=$?
expect_error 78 "no micro-batch divides the batch of 512 units"

rc=0; "$bin/hetseq" plan 2>"$work/log" || rc=$?
expect_error 64 "CLUSTER.cfg is missing"
rc=0; "$bin/hetseq" plan "$work/none.cfg" 2>"$work/log" || rc=$?
expect_error 66 "none.cfg"
rc=0; "$bin/hetseq" plan "$work/two.cfg" --from "$work/none" 2>"$work/log" || rc=$?
expect_error 66 "summary.json"
mkdir "$work/bad"; echo '{"updates": 3}' >"$work/bad/summary.json"
rc=0; "$bin/hetseq" plan "$work/two.cfg" --from "$work/bad" 2>"$work/log" || rc=$?
expect_error 65 "is not a run's summary"
echo 'batsh = 3' >>"$work/two.cfg"
rc=0; "$bin/hetseq" plan "$work/two.cfg" 2>"$work/log" || rc=$?
expect_error 78 "two.cfg line 8: unknown key 'batsh' in [job]: Did you mean batch?"

# From a run: another number of ranks and another batch need no measured numbers of their own.
make_some_images 200 20
run_ranks 2 "$bin/hetseq" train --task mnist --data "$work/data/train*.h5" --batch-size 24 --max-sentences 0=8,1=4 --balance declared \
  --max-update 5 --save-dir "$work/run"
expect_ok "training"
host=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["ranks"][0]["host"])' "$work/run/summary.json")
printf '[nodes %s]\ngpus = 3\n[job]\nbatch = 96\n' "$host" >"$work/three.cfg"
"$bin/hetseq" plan "$work/three.cfg" --from "$work/run" >"$work/log" || { cat "$work/log"; fail "plan --from"; }
grep -q "as measured on '$host'" "$work/log" || { cat "$work/log"; fail "no word of what was taken"; }
"$bin/hetseq" plan "$work/three.cfg" --from "$work/run" --json >"$work/plan.json" || fail "plan --from --json"
[[ $(json "$work/plan.json" ranks) == 3 && $(json "$work/plan.json" batch) == 96 ]] || fail "three ranks, batch 96"
printf '[nodes elsewhere]\n' >"$work/elsewhere.cfg"
rc=0; "$bin/hetseq" plan "$work/elsewhere.cfg" --from "$work/run" 2>"$work/log" || rc=$?
expect_error 78 "no rank of the run measures 'elsewhere'"

# From a run that measured its ranks, and from the costs it kept: also where a batch is another number of micro-batches.
run_ranks 2 "$bin/hetseq" train --task mnist --data "$work/data/train*.h5" --batch-size 64 --max-sentences 16 \
  --cache-dir "$work/cache" --max-update 4 --save-dir "$work/auto"
expect_ok "training with balance auto"
printf '[nodes %s]\n[job]\nbatch = 200\n' "$host" >"$work/one.cfg"
"$bin/hetseq" plan "$work/one.cfg" --from "$work/auto" >"$work/log" || { cat "$work/log"; fail "plan --from auto"; }
grep -q "the cost of 2 ranks on '$host'" "$work/log" || { cat "$work/log"; fail "the costs are not taken"; }
kept=("$work"/cache/step-cost-*.json)
printf '[device measured]\ncosts = cache/%s\n[nodes measured]\ncount = 2\n[job]\nbatch = 64\n' "${kept[0]##*/}" >"$work/kept.cfg"
"$bin/hetseq" plan "$work/kept.cfg" >"$work/log" || { cat "$work/log"; fail "plan with costs"; }
grep -q 'micro-batch 16, as in ' "$work/log" || { cat "$work/log"; fail "the kept cost is not taken"; }
echo '{}' >"${kept[0]}"
rc=0; "$bin/hetseq" plan "$work/kept.cfg" 2>"$work/log" || rc=$?
expect_error 65 "holds no cost"

# From what a GPU could do at most.
run_ranks 1 "$bin/hetseq" bench roofline --task mnist --data "$work/data/train*.h5" --max-sentences 32 --device a100
expect_ok "bench roofline"
sed -n '/^{/,/^}/p' "$work/log" >"$work/a100.json"
printf '[device a100]\ncosts = a100.json\n[nodes a100]\ncount = 2\n[job]\nbatch = 64\n' >"$work/bound.cfg"
"$bin/hetseq" plan "$work/bound.cfg" >"$work/log" || { cat "$work/log"; fail "plan with a roofline"; }
grep -q 'micro-batch 32, as in ' "$work/log" || { cat "$work/log"; fail "the roofline is not taken"; }
