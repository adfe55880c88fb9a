#!/usr/bin/env bash
# hetseq checkpoint export: which parameters it takes, what it writes, and that an error leaves everything as it was.
source "$(dirname "$0")/common.sh"

for i in {1..60}; do printf 'the boat %d flows.\nold bridge %d stands over the town.\n\n' "$i" "$i"; done >"$work/text.txt"
"$bin/hetseq" prepare vocabulary --input "$work/text.txt" --vocab-size 60 --output "$work/vocab.txt" >/dev/null || fail 'prepare vocabulary'
"$bin/hetseq" prepare bert --input "$work/text.txt" --vocab "$work/vocab.txt" --seq-length 32 --max-predictions 5 --dupe-factor 1 \
  --output "$work/data" >/dev/null || fail 'prepare bert'
cat >"$work/config.json" <<'JSON'
{"vocab_size": 60, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16,
 "max_position_embeddings": 32, "hidden_act": "relu", "tie_word_embeddings": false}
JSON
run=$work/run
run_ranks 2 "$bin/hetseq" train --task bert --model-config "$work/config.json" --data "$work/data/train*.h5" \
  --valid-data "$work/data/train*.h5" --max-sentences 8 --max-update 6 --save-interval-updates 2 --keep-last 0 --lr 0.01 \
  --lr-scheduler fixed --threads 1 --save-dir "$run"
expect_ok train

# export OPTION...: what it says in $work/log, its exit code in $rc.
export_model() { rc=0; "$bin/hetseq" checkpoint export "$@" >"$work/log" 2>&1 || rc=$?; }
# tensors FILE: a checksum for each tensor's name, type, shape and bytes, in the order of the names.
tensors() {
  python3 - "$1" <<'PY'
import hashlib, json, struct, sys
data = open(sys.argv[1], "rb").read()
length, = struct.unpack("<Q", data[:8])
header = json.loads(data[8:8 + length])
assert header.pop("__metadata__") == {"format": "pt"}, header
for name, entry in sorted(header.items()):
    begin, end = (8 + length + offset for offset in entry["data_offsets"])
    print(name, entry["dtype"], entry["shape"], hashlib.sha256(data[begin:end]).hexdigest())
PY
}
# expect_tensors FOLDER FILE: those of the file, and the head's bias, which is the decoder's.
expect_tensors() {
  tensors "$1/model.safetensors" >"$work/found"
  { tensors "$2"; tensors "$2" | sed -n 's/^cls.predictions.decoder.bias /cls.predictions.bias /p'; } | sort >"$work/expected"
  sort "$work/found" | diff - "$work/expected" || fail "$1 does not have the tensors of $2"
}
unfinished() { find "$work" -name '*.unfinished' -o -name '*.tmp-*'; }

export_model "$run" --format hf "$work/hf"; expect_ok export
[[ $(cd "$work/hf" && echo *) == 'config.json model.safetensors tokenizer_config.json vocab.txt' ]] || { ls "$work/hf"; fail 'the files'; }
expect_tensors "$work/hf" "$run/best.safetensors"
grep -q "^model .*$run/best.safetensors" "$work/log" || { cat "$work/log"; fail 'it does not say what it took'; }
cmp "$work/hf/vocab.txt" "$work/vocab.txt" || fail 'the vocabulary'
python3 - "$work/hf" "$run" <<'PY' || fail 'the configuration'
import json, sys
config, of_run = (json.load(open(f"{folder}/config.json")) for folder in sys.argv[1:])
assert config == {**of_run, "dtype": "float32"}, config
assert config["architectures"] == ["BertForPreTraining"] and config["model_type"] == "bert", config
assert config["hidden_act"] == "relu" and config["tie_word_embeddings"] is False, config
tokenizer = json.load(open(f"{sys.argv[1]}/tokenizer_config.json"))
assert tokenizer == {"tokenizer_class": "BertTokenizer", "do_lower_case": True, "model_max_length": 32}, tokenizer
PY

# The parameters that are asked for.
checkpoint=$run/checkpoints/update-00000004
export_model "$run" "$work/last" --checkpoint last; expect_ok last
expect_tensors "$work/last" "$run/checkpoints/update-00000006/model.safetensors"
export_model "$run" "$work/four" --checkpoint update:4; expect_ok update:4
expect_tensors "$work/four" "$checkpoint/model.safetensors"
export_model "$checkpoint/" "$work/same"; expect_ok 'a checkpoint'
diff -r "$work/four" "$work/same" || fail 'a checkpoint by its folder is another one'
export_model "$run" "$work/mean" --checkpoint average:2; expect_ok average:2
"$bin/hetseq" checkpoint average "$run" --last 2 --output "$work/mean.safetensors" >/dev/null
expect_tensors "$work/mean" "$work/mean.safetensors"
export_model "$run" "$work/file" --checkpoint "$work/mean.safetensors"; expect_ok 'a file'
diff -r "$work/mean" "$work/file" || fail 'a mean by its file is another one'

# What it exports is a model to start from, and to export again.
run_ranks 2 "$bin/hetseq" evaluate --task bert --init-model "$work/hf" --data "$work/data/train*.h5" --precision fp64 --json
expect_ok 'evaluate the export'; json_output "$work/of_export.json"
run_ranks 2 "$bin/hetseq" evaluate "$run" --init-model "$run/best.safetensors" --data "$work/data/train*.h5" --precision fp64 --json
expect_ok 'evaluate the run'; json_output "$work/of_run.json"
[[ $(json "$work/of_export.json" loss) == "$(json "$work/of_run.json" loss)" ]] || fail 'the export has another loss'
export_model "$work/hf" "$work/again"; expect_ok 'again'
diff -r "$work/hf" "$work/again" || fail 'exported again it differs'

# A folder that is there.
export_model "$run" "$work/hf"; expect_error 78 "$work/hf exists already"
touch "$work/hf/README.md" "$work/hf/tokenizer.json"
export_model "$run" "$work/hf" --checkpoint last --overwrite; expect_ok --overwrite
[[ $(cd "$work/hf" && echo *) == 'README.md config.json model.safetensors tokenizer_config.json vocab.txt' ]] || { ls "$work/hf"; fail 'what is replaced'; }
expect_tensors "$work/hf" "$run/checkpoints/update-00000006/model.safetensors"
export_model "$run" "$run/" --overwrite; expect_error 78 'is the folder of the run itself'
export_model "$run" "$work/vocab.txt" --overwrite; expect_error 78 'is a file'

# Errors write nothing.
export_model "$run"; expect_error 64 'DIR is missing'
export_model "$run" "$work/none" --format onnx; expect_error 78 onnx
export_model "$work/no-run" "$work/none"; expect_error 66 "there is no folder $work/no-run"
export_model "$run" "$work/none" --checkpoint update:9; expect_error 66 'no checkpoint of update 9 (it holds those of 6, '
export_model "$run" "$work/none" --checkpoint average:99; expect_error 66 '--checkpoint average:99'
export_model "$checkpoint" "$work/none" --checkpoint last; expect_error 78 'is a checkpoint'
mv "$run/model.safetensors" "$run/best.safetensors" "$work"
export_model "$run" "$work/none"; expect_error 66 '--checkpoint last takes the newest checkpoint'
mv "$work/model.safetensors" "$work/best.safetensors" "$run"
sed 's/"hidden_size": 8/"hidden_size": 16/' "$work/config.json" >"$work/wide.json"
run_ranks 1 "$bin/hetseq" train --task bert --model-config "$work/wide.json" --data "$work/data/train*.h5" --max-update 1 --threads 1 \
  --save-dir "$work/wide"
expect_ok 'another model'
export_model "$run" "$work/none" --checkpoint "$work/wide/model.safetensors"; expect_error 65 'belongs to another model than'
cp -r "$run" "$work/damaged"
truncate -s -1 "$work/damaged/best.safetensors"
export_model "$work/damaged" "$work/none"; expect_error 65 'best.safetensors is not a valid safetensors file'
echo '[1' >"$work/damaged/config.json"
export_model "$work/damaged" "$work/none"; expect_error 65 'config.json holds no JSON object'
rm "$work/damaged/config.json"
export_model "$work/damaged" "$work/none"; expect_error 78 "there is no $work/damaged/config.json"
export_model "$run" "$work/vocab.txt/none"; expect_error 74 'cannot make the folder'
[[ ! -e $work/none && -z $(unfinished) ]] || { unfinished; fail 'an error left something behind'; }

# hetseq's own Transformer is none of transformers'.
mkdir "$work/translator"
echo '{"model_type": "transformer"}' >"$work/translator/config.json"
cp "$run/model.safetensors" "$work/translator"
export_model "$work/translator" "$work/none"; expect_error 78 'hetseq translate'
