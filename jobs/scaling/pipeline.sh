#!/usr/bin/env bash
# A BERT of 30 million parameters as a pipeline over unlike virtual hosts (docs/virtual-workers.md).
# memory: four hosts of half a core, of which none holds the model. What happens without a virtual worker, and with one: its
# speed beside four times what such a host reaches alone without a limit, its memory beside the plan.
# links: hosts of 1, 1/2, 1/4 and 1/4 cores with links of each RATE: the pipeline beside data parallelism, in turns.
# layouts: the same hosts, in turns: --virtual-workers auto, data parallelism by measured speeds and in equal parts, the same
# with --staleness 1, one virtual worker of all, and the fastest host alone. With MEMORY some do not fit.
# All: what the start report predicts beside what was measured. Needs root, iproute2, control groups, and a machine that is
# otherwise idle.
set -euo pipefail
shopt -s inherit_errexit

usage='usage: jobs/scaling/pipeline.sh memory | links RATE... | layouts RATE...     (rates as 1gbit 100mbit)
environment:
  HETSEQ   the program (build/cpu/bin/hetseq)
  MIB      of each host, for memory (650)
  CORES    of the hosts (0.5 0.5 0.5 0.5, and for links and layouts 1.0 0.5 0.25 0.25): less beside other work
  MEMORY   of the hosts, for layouts [MiB], as 1200 500 500 500 (no limits)
  TIED     false: the decoder of masked tokens has a weight of its own, and stages share no parameter (true)
  BATCH    samples of an update (64)
  SAMPLES  of a micro-batch at the most (8)
  UPDATES  of each run, the first of which does not count (6)
  LAYOUTS  for layouts (auto parallel equal late pipeline fastest; late needs 3 updates)
  ROUNDS   (3)'
[[ ${1-} != -h && ${1-} != --help ]] || { echo "$usage"; exit 0; }
[[ (${1-} == memory && $# == 1) || (${1-} =~ ^(links|layouts)$ && $# -ge 2) ]] || { echo "$usage" >&2; exit 64; }
source "$(dirname "$0")/../common.sh"
what=$1 rates=("${@:2}")
hetseq=$(realpath "${HETSEQ:-build/cpu/bin/hetseq}")
vcluster=tests/cluster/vcluster
mib=${MIB:-650} batch=${BATCH:-64} samples=${SAMPLES:-8} updates=${UPDATES:-6} rounds=${ROUNDS:-3}
if [[ ! $mib$batch$samples$updates$rounds =~ ^[0-9]+$ || ! ${TIED:-true} =~ ^(true|false)$ ]] || ((updates < 2)); then echo "$usage" >&2; exit 64; fi
[[ -x $hetseq ]] || { echo "there is no $hetseq: build it (docs/building.md), or name it in HETSEQ" >&2; exit 69; }
"$vcluster" possible ||
  { echo 'virtual hosts need root, iproute2, network namespaces and control groups' >&2; exit 69; }
prepare_bert_8192
export OMP_NUM_THREADS=1
cores=(0.5 0.5 0.5 0.5)
[[ $what == memory ]] || cores=(1.0 0.5 0.25 0.25)
read -ra memory <<<"${MEMORY-}"
read -ra layouts <<<"${LAYOUTS:-auto parallel equal late pipeline fastest}"
[[ -z ${CORES-} ]] || read -ra cores <<<"$CORES"
work=$PWD/build/scaling/pipeline-$what
rm -rf "$work"
mkdir -p "$work"
trap '"$vcluster" down' EXIT
data=$PWD/data/bert-8192
model=$work/model.json
sed "s/^{/{\"tie_word_embeddings\": ${TIED:-true},/" "$data/model.json" >"$model"
task=(--task bert --model-config "$model" --data "$data/train*.h5" --optimizer adamw --threads 1
  --cache-dir none --batch-size "$batch" --max-update "$updates" --log-interval 1)
hide='mount -t tmpfs none /sys/fs/cgroup && exec "$@"' # so that no limit of memory is seen

# hosts: h1 to h4 with a rank each; `limit`, or what MEMORY says, of memory where that is set, links of `rate` where that is.
hosts() {
  local specs=() quota host=0 mib
  for quota in "${cores[@]}"; do
    mib=${limit:-${memory[host]-}}
    specs+=("h$((++host)):cpu=$quota,slots=1${mib:+,mem=$mib}")
  done
  "$vcluster" down
  "$vcluster" up "${specs[@]}" ${rate:+--rate "$rate"}
}
# train NAME WRAPPER... -- OPTION...: on all hosts; a run folder and a log in $work/NAME-ROUND.
train() {
  local run=$work/$1-$round wrapper=(); shift
  while [[ $1 != -- ]]; do wrapper+=("$1"); shift; done
  mkdir "$run"
  echo "${run##*/} (load $(cut -d ' ' -f 1 /proc/loadavg))" >&2
  "$vcluster" run -np "${ranks:-4}" -x OMP_NUM_THREADS=1 "${wrapper[@]}" "$hetseq" train "${task[@]}" --save-dir "$run/run" \
    --save-interval "${saves:-0}" --save-minutes 0 "${@:2}" >"$run/log" 2>&1 ||
    grep -E 'does not hold the model|killed for want of memory|no cut of the model fits' "$run/log" >"$run/end" || { cat "$run/log" >&2; return 1; }
  for host in h1 h2 h3 h4; do "$vcluster" peak $host; done >"$run/peaks"
  rm -rf "$run/run/checkpoints" "$run/run"/*.safetensors
}
# alone: the first host by itself, with its part of the batch and the pipeline's micro-batches.
alone() {
  local micro_batch
  micro_batch=$(sed -nE 's/.*micro-batches of ([0-9]+) samples.*/\1/p' "$work/pipeline-$round/log")
  echo "alone-$round (load $(cut -d ' ' -f 1 /proc/loadavg))" >&2
  "$vcluster" exec h1 "$hetseq" train "${task[@]}" --batch-size $((batch / 4)) --max-sentences "$micro_batch" \
    --save-interval 0 --save-minutes 0 --save-dir "$work/alone-$round" >"$work/log" 2>&1 || { cat "$work/log" >&2; return 1; }
  rm -rf "$work"/alone-*/checkpoints "$work"/alone-*/*.safetensors
}

as_pipeline=(--max-sentences "$samples" --virtual-workers)
if [[ $what == memory ]]; then
  for ((round = 1; round <= rounds; ++round)); do
    if ((round == 1)); then
      limit=$mib hosts
      train none -- --max-sentences "$samples"
      limit=$mib hosts
      train none-hidden unshare --mount bash -c "$hide" bash -- --max-sentences "$samples"
    fi
    limit=$mib hosts # its peaks begin anew
    saves=$((updates / 2)) train pipeline -- "${as_pipeline[@]}" h1+h2+h3+h4 --valid-data "$data/valid*.h5"
    hosts
    alone
  done
elif [[ $what == layouts ]]; then
  for rate in "${rates[@]}"; do
    hosts
    for ((round = 1; round <= rounds; ++round)); do
      for layout in "${layouts[@]}"; do
        ranks=4
        case $layout in
          auto) options=(--virtual-workers auto) ;;
          parallel) options=() ;;
          equal) options=(--balance equal) ;;
          late)
            ((updates > 2)) || continue
            options=(--staleness 1)
            ;;
          pipeline) options=(--virtual-workers h1+h2+h3+h4) ;;
          fastest) options=() ranks=1 ;;
          *) echo "$usage" >&2; exit 64 ;;
        esac
        train "$layout-$rate" -- --max-sentences "$samples" "${options[@]}"
      done
    done
  done
else
  for rate in "${rates[@]}"; do
    hosts
    for ((round = 1; round <= rounds; ++round)); do
      train "parallel-$rate" -- --max-sentences "$samples"
      train "pipeline-$rate" -- "${as_pipeline[@]}" h1+h2+h3+h4
    done
  done
fi
python3 - "$work" "$what" "$rounds" "${rates[@]}" <<'PY'
import json, pathlib, re, statistics, sys
work, what, rounds, rates = pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4:]

def spread(values, form=",.0f", unit=""):
    return f"{statistics.median(values):{form}}{unit} ({min(values):{form}} to {max(values):{form}})"

def rate_of(folder, late=0):
    """Samples a second. The last `late` updates are applied at the end, when nothing is computed any more."""
    lines = [line for line in map(json.loads, open(folder / "metrics.jsonl")) if line["kind"] == "train"]
    lines = lines[1:len(lines) - late]
    return 1000 * statistics.median(line["samples"] / line["step_ms"] for line in lines)

def ending(folder):
    if not (folder / "end").exists():
        return "trains"
    return (folder / "end").read_text().strip().splitlines()[0]

class Pipeline:
    """A run, beside what its start report said."""
    def __init__(self, folder):
        summary = json.loads((folder / "run/summary.json").read_text())
        self.rate, told = rate_of(folder / "run"), summary["workers"][0]
        self.micro_batch, self.predicted, self.bubble = told["micro_batch"], told["planned_ms"], 100 * told["planned_bubble"]
        self.ranks = sorted((rank for rank in summary["ranks"] if "stage" in rank), key=lambda rank: rank["stage"]["number"])
        self.cut = "+".join(str(rank["stage"]["units"]) for rank in self.ranks)
        self.measured = told["ms"]
        self.busy = [rank["compute_ms"] / self.measured for rank in self.ranks]
        self.groups = [int(line) for line in (folder / "peaks").read_text().split()]

    def waiting(self):
        return 100 * (1 - statistics.mean(self.busy))

def describe(runs):
    print("cuts, and micro-batches:", ", ".join(f"{run.cut} on {' '.join(rank['host'] for rank in run.ranks)} of {run.micro_batch}" for run in runs))
    print("forward and backward, ms:", spread([run.measured for run in runs]), "where",
          spread([run.predicted for run in runs]), "was predicted:",
          spread([run.measured / run.predicted for run in runs], ".2f"), "of it")
    print("stages wait", spread([run.waiting() for run in runs], ".0f", " %"), "of the time where",
          spread([run.bubble for run in runs], ".0f", " %"), "was predicted")

def memory_case():
    for name in ("none", "none-hidden"):
        print(f"{name}: {ending(work / f'{name}-1')}; peaks of the hosts, MiB: "
              + (work / f"{name}-1" / "peaks").read_text().replace("\n", " "))
    runs = [Pipeline(work / f"pipeline-{n}") for n in range(1, rounds + 1)]
    sums = [4 * rate_of(work / f"alone-{n}") for n in range(1, rounds + 1)]
    describe(runs)
    print("samples a second:", spread([run.rate for run in runs], ".2f"), "where one host reaches a quarter of",
          spread(sums, ".2f") + ":", spread([100 * run.rate / total for run, total in zip(runs, sums)], ".0f", " %"))
    print("| host | planned, MiB | peak | of the plan | of its control group |\n|---|---|---|---|---|")
    for number, host in enumerate(("h1", "h2", "h3", "h4")):
        own = [rank for run in runs for rank in run.ranks if rank["host"] == host]
        planned, peaks = [rank["stage"]["planned_memory_mb"] for rank in own], [rank["peak_memory_mb"] for rank in own]
        print(f"| {host} | {spread(planned)} | {spread(peaks)} | {spread([p / q for p, q in zip(peaks, planned)], '.2f')} | "
              f"{spread([run.groups[number] for run in runs])} |")

def links_case():
    for rate in rates:
        numbers = range(1, rounds + 1)
        runs = [Pipeline(work / f"pipeline-{rate}-{n}") for n in numbers]
        whole = [rate_of(work / f"parallel-{rate}-{n}/run") for n in numbers]
        print(f"{rate}:")
        describe(runs)
        print("samples a second:", spread([run.rate for run in runs], ".2f"), "and by data parallelism",
              spread(whole, ".2f"), "or", spread([run.rate / other for run, other in zip(runs, whole)], ".2f"), "times")

def layouts_case():
    for rate in rates:
        print(f"{rate}:\n| layout | samples a second | of the best |\n|---|---|---|")
        reached = {}
        for name in ("auto", "parallel", "equal", "late", "pipeline", "fastest"):
            runs = [work / f"{name}-{rate}-{n}" for n in range(1, rounds + 1)]
            if not runs[0].exists():  # not among LAYOUTS
                continue
            if (runs[0] / "end").exists():
                print(f"| {name} | {ending(runs[0])} | |")
            else:
                reached[name] = [rate_of(run / "run", late=int(name == "late")) for run in runs]
        best = max(statistics.median(values) for values in reached.values())
        for name, values in reached.items():
            print(f"| {name} | {spread(values, '.2f')} | {statistics.median(values) / best:.2f} |")
        if "auto" not in reached:
            continue
        for n in range(1, rounds + 1):
            summary = json.loads((work / f"auto-{rate}-{n}/run/summary.json").read_text())
            taken, measured = summary["layouts"][0], summary["step_ms"]["median"]
            print(f"auto took: {taken['name']}; planned {taken['planned_ms']:,.0f} ms an update, measured {measured:,.0f}:",
                  f"{measured / taken['planned_ms']:.2f} of it; next:",
                  "; ".join(f"{other['name']} {other['planned_ms']:,.0f}" for other in summary["layouts"][1:4]))

{"links": links_case, "layouts": layouts_case, "memory": memory_case}[what]()
PY
