#!/usr/bin/env bash
# Words with tags to shards, training on them, and labels for lines: the same on any number of ranks.
source "$(dirname "$0")/common.sh"
run_hetseq() { run_ranks "$1" "$bin/hetseq" "${@:2}"; }

# 240 sentences of a made language: a name is a disease behind "has", with its second word if it has one.
python3 - "$work" <<'PYTHON'
import random, sys
folder, generator = sys.argv[1], random.Random(1)
names = [["gout"], ["flu"], ["lung", "cancer"], ["heart", "disease"], ["measles"]]
others = "the patient of a study with no sign was seen in new cases old".split()

def sentence():
    words = [(generator.choice(others), "O") for _ in range(generator.randint(2, 9))]
    for _ in range(generator.randint(0, 2)):
        name = generator.choice(names)
        words += [("has", "O"), (name[0], "B-Disease")] + [(word, "I-Disease") for word in name[1:]]
        words += [(generator.choice(others), "O")]
    return words

for name, count in (("train", 200), ("valid", 40)):
    with open(f"{folder}/{name}.tsv", "w") as file:
        for words in (sentence() for _ in range(count)):
            file.write("".join(f"{word}\t{tag}\n" for word, tag in words) + "\n")
pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + others + [
    "has", "gout", "flu", "lung", "can", "##cer", "heart", "dis", "##ease", "meas", "##les"]
open(f"{folder}/vocab.txt", "w").write("\n".join(pieces) + "\n")
open(f"{folder}/tiny.json", "w").write(
    '{"vocab_size": %d, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, '
    '"intermediate_size": 32, "max_position_embeddings": 32, "initializer_range": 0.1}' % len(pieces))
PYTHON

prepare() { run_hetseq "$1" prepare ner --input "$work/train.tsv" --valid-input "$work/valid.tsv" --vocab "$work/vocab.txt" --output "$work/$2"; }
prepare 1 data; expect_ok 'prepare ner'
grep -q 'O, B-Disease, I-Disease' "$work/log" || { cat "$work/log"; fail 'the labels'; }
prepare 3 again; expect_ok 'prepare ner on three ranks'
cmp "$work/data/train-00000-of-00001.h5" "$work/again/train-00000-of-00001.h5" || fail 'other bytes on three ranks'

# train RANKS RUN OPTION...
train() {
  local ranks=$1 run=$2; shift 2
  run_hetseq "$ranks" train --task token-classification --data "$work/data/train*.h5" --valid-data "$work/data/valid*.h5" \
    --model-config "$work/tiny.json" --max-tokens 64 --batch-tokens 400 --threads 1 --lr 0.01 --warmup-updates 5 \
    --best-by f1:max --precision fp64 --save-dir "$work/$run" "$@"
}
same() { "$bin/compare_models" "$work/$1/model.safetensors" "$work/$2/model.safetensors" 1e-12 || fail "$1 and $2 differ"; }

# Any ranks give the same parameters, with dropout.
for ranks in 1 3; do
  train "$ranks" "ranks-$ranks" --max-update 10 --class-weights O=0.5,B-Disease=2 --layer-lr-decay 0.9 --dropout 0.1
  expect_ok "train on $ranks ranks"
done
same ranks-1 ranks-3

# It learns the language.
train 2 run --max-epoch 12; expect_ok train
[[ -e $work/run/best.safetensors && -e $work/run/labels.txt && -e $work/run/vocab.txt ]] || fail 'the files of the run'
python3 - "$work/run" <<'PYTHON' || fail 'the scores'
import json, sys
valid = [json.loads(line) for line in open(sys.argv[1] + "/metrics.jsonl")]
valid = [line for line in valid if line["kind"] == "valid"]
best = max(line["f1"] for line in valid)
assert best > 0.9, best
for line in valid:
    for mode in ("", "strict_"):
        precision, recall = line[mode + "precision"], line[mode + "recall"]
        f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0
        assert abs(f1 - line[mode + "f1"]) < 1e-9, line
PYTHON
python3 -c 'import json, sys; c = json.load(open(sys.argv[1])); assert c["architectures"] == ["BertForTokenClassification"] and c["id2label"]["1"] == "B-Disease", c' \
  "$work/run/config.json" || fail 'config.json'

# What is frozen stays the pretrained model's in each worker, also where a run goes on.
tune_frozen() {
  local ranks=$1 run=$2; shift 2
  run_hetseq "$ranks" train --task token-classification --data "$work/data/train*.h5" --init-model "$work/run" --freeze-layers 1 \
    --max-tokens 64 --batch-tokens 400 --threads 1 --optimizer sgd --lr 0.05 --precision fp64 --max-update 6 --save-dir "$work/$run" "$@"
}
tune_frozen 1 frozen; expect_ok 'frozen layers'
for stop in 3 0; do
  tune_frozen 3 frozen-workers --virtual-workers 0,1+2 --stage-units 4,2+2 --stop-exit-code 0 --stop-after "$stop"
  expect_ok 'frozen layers in two workers'
done
grep -q 'continues from' "$work/log" || { cat "$work/log"; fail 'the run did not go on'; }
same frozen frozen-workers

# Lines in, labels out: in order, on any ranks.
{ for _ in $(seq 30); do printf '%s\n' 'the patient has lung cancer in a study' 'no sign' '' 'old cases has  flu was'; done; } >"$work/lines"
predict() {
  local ranks=$1; shift
  rc=0
  timeout 300 mpirun -np "$ranks" "$bin/hetseq" predict "$work/run" --threads 1 --batch-size 7 "$@" <"$work/lines" >"$work/labels-$ranks" 2>"$work/log" || rc=$?
}
for ranks in 1 3; do
  predict "$ranks"; expect_ok "predict on $ranks ranks"
  cmp "$work/labels-1" "$work/labels-$ranks" || fail "other labels on $ranks ranks"
done
[[ $(wc -l <"$work/labels-1") == 120 ]] || fail 'as many lines as came'
head -1 "$work/labels-1" | grep -qP '^the O\tpatient O\thas O\tlung B-Disease\tcancer I-Disease\tin O\ta O\tstudy O$' ||
  { head -4 "$work/labels-1"; fail 'the first line'; }
[[ -z $(sed -n 3p "$work/labels-1") ]] || fail 'an empty line'
sed -n 120p "$work/labels-1" | grep -qP '^old O\tcases O\thas O\tflu B-Disease\twas O$' || fail 'the last line'

# A pretrained network with another head: its own are not used, the new one is drawn. Nothing frozen changes.
python3 - "$work" <<'PYTHON'
import json, struct, sys
folder = sys.argv[1]
data = open(f"{folder}/run/model.safetensors", "rb").read()
size = struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8:8 + size])
header["cls.predictions.bias"] = header.pop("classifier.bias")
header["cls.seq_relationship.weight"] = header.pop("classifier.weight")
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
import os
os.makedirs(f"{folder}/pretrained", exist_ok=True)
open(f"{folder}/pretrained/model.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + data[8 + size:])
for name in ("config.json", "vocab.txt"):
    open(f"{folder}/pretrained/{name}", "w").write(open(f"{folder}/run/{name}").read())
header["bert.other"] = header.pop("bert.encoder.layer.0.output.dense.bias")
os.makedirs(f"{folder}/broken", exist_ok=True)
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
open(f"{folder}/broken/model.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + data[8 + size:])
open(f"{folder}/broken/config.json", "w").write(open(f"{folder}/run/config.json").read())
PYTHON
tune() {
  local run=$1 model=$2; shift 2
  run_hetseq 2 train --task token-classification --data "$work/data/train*.h5" --init-model "$work/$model" --max-tokens 64 \
    --batch-tokens 400 --threads 1 --precision fp64 --max-update 2 --save-dir "$work/$run" "$@"
}
tune tuned pretrained --freeze-layers 1; expect_ok 'fine-tune'
grep -q 'info not read from .*: cls.predictions.bias, cls.seq_relationship.weight$' "$work/log" ||
  { cat "$work/log"; fail 'the unused head'; }
grep -q 'drawn from the seed are classifier.weight, classifier.bias$' "$work/log" ||
  { cat "$work/log"; fail 'the new head'; }
python3 - "$work" <<'PYTHON' || fail 'what was frozen'
import array, json, struct, sys
def as_loaded(data):  # a file is read into fp32 and then converted
    return array.array("d", array.array("f", array.array("d", data))).tobytes()
def tensors(path):
    data = open(path, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    return {name: data[8 + size + entry["data_offsets"][0]:8 + size + entry["data_offsets"][1]]
            for name, entry in json.loads(data[8:8 + size]).items() if name != "__metadata__"}
before, after = tensors(sys.argv[1] + "/pretrained/model.safetensors"), tensors(sys.argv[1] + "/tuned/model.safetensors")
for name in after:
    if name.startswith("classifier"):
        continue
    frozen = name.startswith(("bert.embeddings.", "bert.encoder.layer.0."))
    assert frozen == (as_loaded(before[name]) == after[name]), name
PYTHON
tune none broken
expect_error 65 "lacks the model's tensor 'bert.encoder.layer.0.output.dense.bias'"

# Mistakes come before any work.
tune none pretrained --class-weights Diseases=2
expect_error 78 "--class-weights names the label 'Diseases'"
tune none pretrained --freeze-layers 3
expect_error 78 '--freeze-layers 3'
printf 'word\n' >"$work/bad.tsv"
run_hetseq 2 prepare ner --input "$work/bad.tsv" --vocab "$work/vocab.txt" --output "$work/none"
expect_error 65 'bad.tsv, line 1 has one column'
