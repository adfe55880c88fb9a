#!/usr/bin/env bash
# Texts with labels or numbers to shards, training on them, and answers for lines: the same on any number of ranks.
source "$(dirname "$0")/common.sh"
run_hetseq() { run_ranks "$1" "$bin/hetseq" "${@:2}"; }

# A pair of texts agrees where both hold "good" or both hold "bad"; the number of a text is its share of good words.
python3 - "$work" <<'PYTHON'
import csv, random, sys
folder, generator = sys.argv[1], random.Random(1)
others = "the film of a story with no end was seen".split()

def text(word):
    words = [generator.choice(others) for _ in range(generator.randint(1, 5))]
    words.insert(generator.randint(0, len(words)), word)
    return " ".join(words)

for name, count in (("train", 300), ("valid", 60)):
    with open(f"{folder}/{name}.csv", "w", newline="") as pairs, open(f"{folder}/{name}.tsv", "w") as numbers:
        table = csv.writer(pairs)
        table.writerow(["number", "first", "second", "agrees"])
        for i in range(count):
            one, two = generator.choice(["good", "bad"]), generator.choice(["good", "bad"])
            table.writerow([i, text(one) + ",", text(two), "yes" if one == two else "no"])
            words = [generator.choice(["good", "bad"]) for _ in range(4)]
            numbers.write(f"{' '.join(words)}\t{words.count('good') / 4}\n")
pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ",", "good", "bad"] + others
open(f"{folder}/vocab.txt", "w").write("\n".join(pieces) + "\n")
open(f"{folder}/tiny.json", "w").write(
    '{"vocab_size": %d, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, '
    '"intermediate_size": 64, "max_position_embeddings": 32, "initializer_range": 0.1}' % len(pieces))
PYTHON

prepare() {
  run_hetseq "$1" prepare classification --input "$work/train.csv" --valid-input "$work/valid.csv" --vocab "$work/vocab.txt" \
    --text-column first --pair-column second --label-column agrees --output "$work/$2"
}
prepare 2 pairs; expect_ok 'prepare classification'
grep -q '^yes ' "$work/log" || { cat "$work/log"; fail 'the labels'; }

# train RANKS RUN OPTION...
train() {
  local ranks=$1 run=$2; shift 2
  run_hetseq "$ranks" train --task sequence-classification --model-config "$work/tiny.json" --max-tokens 256 --batch-size 30 \
    --threads 1 --lr 0.003 --warmup-updates 5 --precision fp64 --dropout 0.1 --save-dir "$work/$run" "$@"
}
pairs=(--data "$work/pairs/train*.h5" --valid-data "$work/pairs/valid*.h5")

# Any ranks give the same parameters and scores, with dropout.
for ranks in 1 3; do
  train "$ranks" "ranks-$ranks" "${pairs[@]}" --max-update 10 --class-weights no=2
  expect_ok "train on $ranks ranks"
done
"$bin/compare_models" "$work/ranks-1/model.safetensors" "$work/ranks-3/model.safetensors" 1e-12 || fail 'other parameters'
python3 - "$work" <<'PYTHON' || fail 'the scores on other ranks'
import json, sys
def scores(run):
    lines = [json.loads(line) for line in open(f"{sys.argv[1]}/{run}/metrics.jsonl")]
    return [{name: line[name] for name in ("accuracy", "f1", "macro_f1", "matthews")} for line in lines if line["kind"] == "valid"]
assert scores("ranks-1") == scores("ranks-3") and scores("ranks-1"), (scores("ranks-1"), scores("ranks-3"))
PYTHON

# It learns, and the best model is kept by a score.
train 2 run "${pairs[@]}" --max-epoch 30 --best-by matthews:max; expect_ok train
python3 - "$work/run" <<'PYTHON' || fail 'what it learned'
import json, sys
valid = [json.loads(line) for line in open(sys.argv[1] + "/metrics.jsonl")]
best = max(line["matthews"] for line in valid if line["kind"] == "valid")
assert best > 0.8, best
config = json.load(open(sys.argv[1] + "/config.json"))
assert config["architectures"] == ["BertForSequenceClassification"] and config["id2label"] == {"0": "no", "1": "yes"}, config
PYTHON

# predict RANKS RUN INPUT OUTPUT
predict() {
  rc=0
  timeout 300 mpirun -np "$1" "$bin/hetseq" predict "$work/$2" --threads 1 --batch-size 7 <"$work/$3" >"$work/$4" 2>"$work/log" || rc=$?
}
for _ in $(seq 20); do printf '%s\n' $'a good film\tthe end was good' $'good story\tno bad' '' 'bad'; done >"$work/lines"
for ranks in 1 3; do
  predict "$ranks" run lines "labels-$ranks"; expect_ok "predict on $ranks ranks"
done
cut -f 1 "$work/labels-1" >"$work/first"
cut -f 1 "$work/labels-3" | cmp - "$work/first" || fail 'other labels on three ranks'
[[ $(wc -l <"$work/labels-1") == 80 ]] || fail 'as many lines as came'
head -1 "$work/labels-1" | grep -qP '^yes\t(1|0\.\d+)$' || { head -4 "$work/labels-1"; fail 'the first line'; }
sed -n 2p "$work/labels-1" | grep -qP '^no\t' || { head -4 "$work/labels-1"; fail 'the second line'; }
[[ -z $(sed -n 3p "$work/labels-1") ]] || fail 'a blank line'

# Numbers.
run_hetseq 1 prepare classification --input "$work/train.tsv" --valid-input "$work/valid.tsv" --vocab "$work/vocab.txt" --numbers \
  --output "$work/numbers"
expect_ok 'prepare classification of numbers'
train 2 regression --data "$work/numbers/train*.h5" --valid-data "$work/numbers/valid*.h5" --max-epoch 15 --best-by spearman:max
expect_ok 'train on numbers'
python3 - "$work/regression" <<'PYTHON' || fail 'the correlations'
import json, sys
valid = [json.loads(line) for line in open(sys.argv[1] + "/metrics.jsonl")]
valid = [line for line in valid if line["kind"] == "valid"]
assert max(line["spearman"] for line in valid) > 0.9 and max(line["pearson"] for line in valid) > 0.9, valid[-1]
PYTHON
printf 'good good good good\nbad bad bad bad\n' >"$work/texts"
predict 2 regression texts values; expect_ok 'predict numbers'
python3 -c 'import sys; high, low = (float(line) for line in open(sys.argv[1])); assert 1.5 > high > low > -0.5, (high, low)' \
  "$work/values" || fail 'the numbers'
run_hetseq 1 predict "$work/regression" --data "$work/numbers/valid*.h5" --output "$work/numbers.h5"; expect_ok 'predict shards'

# Mistakes come before any work.
train 2 none --data "$work/numbers/train*.h5" --class-weights number=2
expect_error 78 '--class-weights for numbers'
run_hetseq 2 prepare classification --input "$work/train.csv" --vocab "$work/vocab.txt" --text-column firs --output "$work/none"
expect_error 65 "no column named 'firs'"
