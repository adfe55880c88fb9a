#!/usr/bin/env bash
# Ranks of unlike memory: two virtual hosts whose ranks may take 4 GB and 1 GB. A BERT whose optimizer's state fits the
# small one neither whole nor in half trains with the state cut by memory. Each way once as it is, and once with the
# limits hidden from hetseq, so that it does not refuse; those that train in rounds, beside hosts that both have 4 GB.
# Needs root, iproute2, control groups of memory, and a machine that is otherwise idle.
set -euo pipefail
shopt -s inherit_errexit

usage='usage: jobs/scaling/memory.sh DATA
DATA: BERT shards with sequences of up to 512 tokens and a vocabulary of up to 30,522
environment:
  HETSEQ     the program (build/cpu/bin/hetseq)
  SENTENCES  of a micro-batch, by rank (0=8,1=1)
  OPTIMIZER  (lamb)
  UPDATES    of a run (6)
  ROUNDS     of the runs that train (3)'
[[ ${1-} != -h && ${1-} != --help ]] || { echo "$usage"; exit 0; }
(($# == 1)) || { echo "$usage" >&2; exit 64; }
source "$(dirname "$0")/../common.sh"
data=$1
hetseq=${HETSEQ:-build/cpu/bin/hetseq}
vcluster=tests/cluster/vcluster
large=4096 small=1024 # MiB
[[ -x $hetseq ]] || { echo "there is no $hetseq: build it (docs/building.md), or name it in HETSEQ" >&2; exit 69; }
compgen -G "$data" >/dev/null || { echo "no file matches $data" >&2; exit 66; }
"$vcluster" possible ||
  { echo 'virtual hosts need root, iproute2, network namespaces and control groups' >&2; exit 69; }
if [[ -e /sys/fs/cgroup/memory/cgroup.procs ]]; then
  group=/sys/fs/cgroup/memory/hetseq-$$ limit=memory.limit_in_bytes peak=memory.max_usage_in_bytes
else
  group=/sys/fs/cgroup/hetseq-$$ limit=memory.max peak=memory.peak
  ! echo +memory 2>/dev/null >/sys/fs/cgroup/cgroup.subtree_control || true
fi

# remove_groups: with the processes that are still in them.
remove_groups() {
  local each _
  for each in "$group"-*; do
    for _ in {1..50}; do
      [[ -d $each ]] || break
      xargs -r kill -KILL <"$each/cgroup.procs" 2>/dev/null || true
      rmdir "$each" 2>/dev/null || sleep 0.1
    done
  done
}
# make_group RANK MIB: memory and no swap beyond it.
make_group() {
  if ! mkdir "$group-$1" || [[ ! -e $group-$1/$limit ]]; then
    echo "no control group with a limit of memory can be made here ($group-$1)" >&2
    return 69
  fi
  echo "$2M" >"$group-$1/$limit"
  if [[ -e $group-$1/memory.memsw.limit_in_bytes ]]; then echo "$2M" >"$group-$1/memory.memsw.limit_in_bytes"; fi
  if [[ -e $group-$1/memory.swap.max ]]; then echo 0 >"$group-$1/memory.swap.max"; fi
}

work=$(mktemp -d)
trap 'remove_groups; rm -rf "$work"' EXIT
cat >"$work/model.json" <<'JSON'
{"vocab_size": 30522, "hidden_size": 384, "num_hidden_layers": 23, "num_attention_heads": 6, "intermediate_size": 1536,
 "max_position_embeddings": 512, "type_vocab_size": 2, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
 "attention_probs_dropout_prob": 0.1}
JSON
# shellcheck disable=SC2016 # the rank's shell expands them
enter='echo $$ >"$0-$OMPI_COMM_WORLD_RANK/cgroup.procs" && exec "$@"' hide='mount -t tmpfs none /sys/fs/cgroup && exec "$@"'

# train NAME MIB hidden|told OPTION...: ranks 0 and 1, where rank 1 has MIB; what came of it in $work/NAME-ROUND.
train() {
  local name=$1 own=$2 hiding=() run=$work/$1-$round; shift 2
  [[ $1 == told ]] || hiding=(unshare --mount bash -c "$hide" bash)
  shift
  mkdir "$run"
  make_group 0 $large
  make_group 1 "$own"
  echo "$name" >&2
  "$vcluster" run -np 2 -x OMP_NUM_THREADS=1 bash -c "$enter" "$group" "${hiding[@]}" "$hetseq" train --task bert \
    --model-config "$work/model.json" --data "$data" --max-sentences "${SENTENCES:-0=8,1=1}" --threads 1 \
    --optimizer "${OPTIMIZER:-lamb}" --balance declared --max-update "${UPDATES:-6}" --log-interval 1 --save-interval 0 --save-minutes 0 \
    --cache-dir none --save-dir "$run/run" "$@" >"$run/log" 2>&1 ||
    grep -E 'does not hold the model|killed for want of memory' "$run/log" >"$run/end" || { cat "$run/log" >&2; return 1; }
  cat "$group-0/$peak" "$group-1/$peak" >"$run/peaks"
  rm -rf "$run/run/checkpoints" "$run/run/model.safetensors"
  remove_groups
}

"$vcluster" up h1:slots=1 h2:slots=1
trap 'remove_groups; "$vcluster" down; rm -rf "$work"' EXIT
for ((round = 1; round <= ${ROUNDS:-3}; ++round)); do
  if ((round == 1)); then
    train none $small told
    train even $small told --shard optimizer --shard-by even
    train none-hidden $small hidden
    train even-hidden $small hidden --shard optimizer --shard-by even
  fi
  train memory $small told --shard optimizer --shard-by memory
  train none-large $large told
done
python3 - "$work" <<'PY'
import json, pathlib, re, statistics, sys
ways = {"none": "none", "even": "even", "memory": "memory", "none-hidden": "none, limits hidden",
        "even-hidden": "even, limits hidden", "none-large": "none, 4096 MiB for both"}

def ending(run):
    if not (run / "end").exists():
        return "trains"
    if found := re.search(r"= (\d+) MiB before any micro-batch \(it has (\d+) MiB\)", (run / "end").read_text()):
        return "refused: rank 1 needs {} of {} MiB".format(*found.groups())
    updates = len(re.findall(r"  update \d+/", (run / "log").read_text()))
    return "rank 1 is killed " + (f"after {updates} updates" if updates else "before the first update ends")

print("| state cut | what happens | peak of rank 0, MiB | of rank 1 | of their control groups | ms an update |")
print("|---|---|---|---|---|---|")
for name, title in ways.items():
    runs = [run for run in sorted(pathlib.Path(sys.argv[1]).glob(name + "-*")) if re.fullmatch(name + r"-\d+", run.name)]
    groups = [[int(line) / 2**20 for line in (run / "peaks").read_text().split()] for run in runs]
    ends = {ending(run) for run in runs}
    row = [title, " or ".join(sorted(ends)), "", "", " and ".join(f"{max(g):,.0f}" for g in zip(*groups)), ""]
    if ends == {"trains"}:
        found = [json.loads((run / "run/summary.json").read_text()) for run in runs]
        for rank in (0, 1):
            row[2 + rank] = f"{max(each['ranks'][rank]['peak_memory_mb'] for each in found):,.0f}"
        times = [each["step_ms"]["median"] for each in found]
        row[5] = f"{statistics.median(times):,.0f} ({min(times):,.0f} to {max(times):,.0f})"
    print("| " + " | ".join(row) + " |")
PY
