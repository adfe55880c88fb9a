#!/usr/bin/env bash
# Text to BERT's pretraining shards: the same bytes on any number of ranks, which a tiny model trains on; what is refused.
source "$(dirname "$0")/common.sh"

same_files() { diff -rq "$1" "$2" >"$work/diff" || { cat "$work/diff"; fail "$1 and $2 differ"; }; }

# Documents of one to twenty sentences about their own numbers, and a vocabulary of them.
python3 - "$work" <<'PY'
import gzip, random, sys
source = random.Random(3)
words = "the a new river low high wide boat flows stands under over hill town walks sees old bridge".split()
def document(i):
    return "".join(f"{' '.join(source.choice(words) for _ in range(source.randint(2, 25)))} {i}.\n"
                   for _ in range(source.randint(1, 20))) + "\n"
texts = ["".join(document(i) for i in range(begin, begin + 400)) for begin in (0, 400, 800)]
open(f"{sys.argv[1]}/a.txt", "w").write(texts[0])
gzip.open(f"{sys.argv[1]}/b.txt.gz", "wt").write(texts[1])
open(f"{sys.argv[1]}/valid.txt", "w").write(texts[2])
PY
"$bin/hetseq" prepare vocabulary --input "$work/a.txt,$work/b.txt.gz" --vocab-size 200 --output "$work/vocab.txt" >/dev/null ||
  fail 'prepare vocabulary'

prepare=("$bin/hetseq" prepare bert --input "$work/a.txt,$work/b.txt.gz" --valid-input "$work/valid.txt"
  --vocab "$work/vocab.txt" --seq-length 64 --max-predictions 10 --dupe-factor 3 --shards 4)
for ranks in 1 3; do
  run_ranks $ranks "${prepare[@]}" --output "$work/made-$ranks"
  expect_ok "prepare bert on $ranks ranks"
done
same_files "$work/made-1" "$work/made-3"
[[ -e $work/made-1/train-00003-of-00004.h5 && -e $work/made-1/valid-00003-of-00004.h5 ]] || { ls "$work/made-1"; fail 'the shards'; }
cmp "$work/vocab.txt" "$work/made-1/vocab.txt" || fail 'the vocabulary beside the shards'
grep -E '^train +[0-9.]+ +800 +0 ' "$work/log" >/dev/null || { cat "$work/log"; fail 'no count of documents'; }

"${prepare[@]}" --whole-word-masking --seed 5 --json --output "$work/other" >"$work/out.json" || fail '--json'
python3 - "$work/out.json" <<'PY' || { cat "$work/out.json"; fail 'the statistics'; }
import json, sys
train = json.load(open(sys.argv[1]))["sets"]["train"]
assert train["documents"] == 800 and train["documents_dropped"] == 0, train
assert 0.1 < train["mask_rate"] <= 0.16, train
assert 0.5 < train["random_next_rate"] < 0.65, train
assert abs(train["masked"] / train["predictions"] - 0.8) < 0.02, train
assert 0 < train["padding"] < 0.5, train
PY
! cmp -s "$work/other/train-00000-of-00004.h5" "$work/made-1/train-00000-of-00004.h5" || fail 'another seed gives the same shard'

# They are read and trained on, and the vocabulary goes into the run.
cat >"$work/config.json" <<'JSON'
{"vocab_size": 200, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32,
 "max_position_embeddings": 64}
JSON
bert=(--task bert --model-config "$work/config.json")
run_ranks 1 "$bin/hetseq" check "${bert[@]}" --data "$work/made-1/train*.h5"
expect_ok check
run_ranks 2 "$bin/hetseq" train "${bert[@]}" --data "$work/made-1/train*.h5" --valid-data "$work/made-1/valid*.h5" \
  --max-sentences 16 --max-update 30 --lr 0.01 --lr-scheduler fixed --log-interval 1 --threads 1 --save-dir "$work/run"
expect_ok train
cmp "$work/vocab.txt" "$work/run/vocab.txt" || fail 'the vocabulary is not in the run'
cmp "$work/made-1/tokenizer_config.json" "$work/run/tokenizer_config.json" || fail 'the tokenizer is not in the run'
python3 - "$work/run/metrics.jsonl" <<'PY' || fail 'the loss did not fall'
import json, sys
losses = [line["loss"] for line in map(json.loads, open(sys.argv[1])) if line["kind"] == "train"]
assert len(losses) == 30 and sum(losses[-5:]) / 5 < losses[0] - 0.5, losses
PY

# A decoder that begins with the tokens' frequencies begins with a lower loss, the same on any number of ranks; such a run
# is continued and evaluated.
train_from_frequencies() { # RANKS UPDATES FOLDER
  run_ranks "$1" "$bin/hetseq" train "${bert[@]}" --decoder-bias unigram --data "$work/made-1/train*.h5" --precision fp64 \
    --batch-size 32 --max-sentences $((32 / $1)) --max-update "$2" --lr 0.01 --lr-scheduler fixed --log-interval 1 \
    --threads 1 --save-dir "$3"
  expect_ok "--decoder-bias unigram on $1 ranks"
}
train_from_frequencies 1 10 "$work/frequencies-1"
train_from_frequencies 2 5 "$work/frequencies-2"
train_from_frequencies 2 10 "$work/frequencies-2"
"$bin/compare_models" "$work"/frequencies-{1,2}/model.safetensors 1e-9 || fail 'the frequencies differ on two ranks'
run_ranks 1 "$bin/hetseq" evaluate "$work/frequencies-2" --data "$work/made-1/valid-00000*.h5"
expect_ok 'evaluate with --decoder-bias'
python3 - "$work"/{run,frequencies-1}/metrics.jsonl <<'PY' || fail 'the first loss with the frequencies'
import json, sys
zero, frequencies = (next(line["mlm"] for line in map(json.loads, open(path)) if line["kind"] == "train")
                     for path in sys.argv[1:])
assert frequencies < zero - 0.3, (zero, frequencies)
PY

# Unmasked pairs: the same on any number of ranks, and the same training on any cut of the batch.
for ranks in 1 3; do
  run_ranks $ranks "${prepare[@]}" --static-masks off --output "$work/unmasked-$ranks"
  expect_ok "unmasked pairs on $ranks ranks"
done
same_files "$work/unmasked-1" "$work/unmasked-3"
train_unmasked() { # RANKS SAMPLES FOLDER
  run_ranks "$1" "$bin/hetseq" train "${bert[@]}" --data "$work/unmasked-1/train*.h5" --valid-data "$work/unmasked-1/valid*.h5" \
    --batch-size 24 --max-sentences "$2" --max-update 20 --lr 0.01 --lr-scheduler fixed --log-interval 1 --threads 1 \
    --precision fp64 --masked-lm-prob 0.2 --save-dir "$3"
  expect_ok "train on unmasked pairs on $1 ranks"
}
train_unmasked 1 24 "$work/unmasked-run-1"
train_unmasked 3 5 "$work/unmasked-run-3"
python3 - "$work"/unmasked-run-{1,3}/metrics.jsonl <<'PY' || fail 'unmasked pairs train otherwise on three ranks'
import json, sys
one, three = ([line["loss"] for line in map(json.loads, open(path)) if line["kind"] in ("train", "valid")]
              for path in sys.argv[1:])
assert len(one) == len(three) >= 20, (len(one), len(three))
assert all(abs(a - b) < 1e-9 for a, b in zip(one, three)), list(zip(one, three))
assert sum(one[15:20]) / 5 < one[0] - 0.5, one
PY

# Predictions of unmasked pairs are of the text as it is: no seed of masks changes them.
cp -r "$work/unmasked-run-1" "$work/other-seed"
sed -i 's/^seed = .*/seed = 9/' "$work/other-seed/config.cfg"
for run in unmasked-run-1 other-seed; do
  run_ranks 1 "$bin/hetseq" predict "$work/$run" --data "$work/unmasked-1/valid*.h5" --threads 1 --output "$work/$run.h5"
  expect_ok "predict unmasked pairs by $run"
done
"$bin/predictions" same "$work"/{unmasked-run-1,other-seed}.h5 embeddings || fail 'predictions are of masked text'

# LAMB on ranks of 16 and 4 samples trains as on one rank, with dropout, on rows with padding and without.
train_by_lamb() { # RANKS SAMPLES DATA FOLDER [OPTION...]
  run_ranks "$1" "$bin/hetseq" train "${bert[@]}" --data "$work/$3/train*.h5" --batch-size 20 --max-sentences "$2" \
    --balance declared --optimizer lamb --lr 0.001 --adam-eps 1e-6 --threads 1 --save-dir "$4" "${@:5}"
  expect_ok "LAMB on $1 ranks, $3"
}
for data in made-1 unmasked-1; do
  train_by_lamb 1 20 "$data" "$work/lamb-1-$data" --precision fp64 --max-update 4
  train_by_lamb 2 0=16,1=4 "$data" "$work/lamb-2-$data" --precision fp64 --max-update 4
  "$bin/compare_models" "$work/lamb-1-$data/model.safetensors" "$work/lamb-2-$data/model.safetensors" 1e-12 ||
    fail "LAMB on 16 and 4 differs from one rank, $data"
done
train_by_lamb 1 20 made-1 "$work/lamb-1" --max-update 1
train_by_lamb 2 0=16,1=4 made-1 "$work/lamb-2" --max-update 1
"$bin/compare_models" "$work/lamb-1/model.safetensors" "$work/lamb-2/model.safetensors" 1e-5 || fail 'LAMB in fp32 differs'

# Validation by another vocabulary is an error.
"$bin/hetseq" prepare vocabulary --input "$work/valid.txt" --vocab-size 199 --output "$work/other.txt" >/dev/null
run_ranks 1 "$bin/hetseq" prepare bert --input "$work/valid.txt" --vocab "$work/other.txt" --seq-length 64 \
  --max-predictions 10 --output "$work/foreign"
expect_ok 'another vocabulary'
run_ranks 2 "$bin/hetseq" train "${bert[@]}" --data "$work/made-1/train*.h5" --valid-data "$work/foreign/train*.h5" --max-update 1
expect_error 65 "attribute 'vocab.txt' is not the training data's vocabulary"
run_ranks 1 "$bin/hetseq" train --task bert --model-config "$work/small.json" --data "$work/made-1/train*.h5" --max-update 1
expect_error 66 small.json
sed 's/"vocab_size": 200/"vocab_size": 100/' "$work/config.json" >"$work/small.json"
run_ranks 1 "$bin/hetseq" train --task bert --model-config "$work/small.json" --data "$work/made-1/train*.h5" --max-update 1
expect_error 78 'the model is for a vocabulary of 100 pieces'

# What is wrong is found before anything is written, and said once.
run_ranks 2 "${prepare[@]}" --output "$work/made-1"
expect_error 78 'train-00000-of-00004.h5 exists (8 shards are there already)'
run_ranks 2 "${prepare[@]}" --output "$work/made-1" --shards 2 --dupe-factor 1 --overwrite
expect_ok --overwrite
[[ $(find "$work/made-1" -name '*.h5' | wc -l) == 4 ]] || { ls "$work/made-1"; fail 'old shards stay'; }
printf '\n \n' >"$work/blank.txt"
run_ranks 2 "${prepare[@]}" --input "$work/blank.txt" --output "$work/bad"
expect_error 65 "$work/blank.txt has no document (all of its 2 lines are blank)"
run_ranks 2 "${prepare[@]}" --input "$work/a.txt,$work/none" --output "$work/bad"
expect_error 66 "no such file: $work/none"
grep -v MASK "$work/vocab.txt" >"$work/maskless.txt"
run_ranks 1 "${prepare[@]}" --vocab "$work/maskless.txt" --output "$work/bad"
expect_error 65 "maskless.txt has no piece '[MASK]'"
run_ranks 1 "${prepare[@]}" --seq-length 4 --output "$work/bad"
expect_error 78 "--seq-length: '4' is not a whole number from 5"
run_ranks 1 "${prepare[@]}" --max-predictions 62 --output "$work/bad"
expect_error 78 'give 1 to 61'
[[ ! -e $work/bad ]] || fail 'an error left something behind'

# A person sees how far it is.
timeout 250 python3 "$(dirname "$0")/on_terminal.py" "$work/log" -- "${prepare[@]}" --dupe-factor 40 --output "$work/shown" ||
  fail 'on a terminal'
tr '\r' '\n' <"$work/log" | grep -qE '[0-9.]+ % of [0-9.]+ MB  [0-9.]+ MB/s  ETA [0-9]+:[0-9]+' ||
  { cat -v "$work/log"; fail 'no progress is shown'; }
