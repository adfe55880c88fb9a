#!/usr/bin/env bash
# usage: tests/structure/check_includes.sh ROOT
# Refuses, in ROOT/src and ROOT/include:
# - an include that looks up a layer;
# - an include from a folder inside a layer to one beside it that is not listed below (`may`). A folder may always include
#   the folders that it lies in, and those that lie in it;
# - a private header (one in src) of another layer, or one named by less than its path from src where it is in another
#   folder;
# - a source that does not include its own header first;
# - calls of nlohmann's parser and writer but in src/util/json.cpp.
# And <torch/torch.h> and <ATen/ATen.h> anywhere in ROOT but in build.
set -euo pipefail
cd "${1:?usage: check_includes.sh ROOT}"

if grep -rnE --exclude-dir=build '#include <(torch/torch|ATen/(ATen|Functions))\.h>' --include='*.[ch]pp' --include='*.cu*' .; then
  echo 'It holds all of torch, or all operators, which takes each unit several times as long to compile: include the headers of what is used.'
  exit 1
fi
if grep -rnE '[jJ]son::parse\(|\.dump\(' --include='*.[ch]pp' src include | grep -v '^src/util/json\.cpp:'; then
  echo 'It takes each unit two seconds longer to compile: call parse_json or json_text (hetseq/util/json.hpp).'
  exit 1
fi
sources=$(find src include -name '*.cpp' -o -name '*.hpp' -o -name '*.cu' -o -name '*.cuh' | sort)
# shellcheck disable=SC2086
grep -nHE '^ *# *include' $sources | awk -v sources="$sources" '
function complain(text) { print file ":" line ": " text; bad = 1 }
function layer_of(path) { sub(/^(src|include\/hetseq)\//, "", path); sub(/\/.*/, "", path); return path }
function folder_of(path) { sub(/\/[^\/]*$/, "", path); return path }
function own_header(path,   stem, public) {
  if (path !~ /\.(cpp|cu)$/) return ""
  stem = path; sub(/\.(cpp|cu)$/, ".hpp", stem)
  public = stem; sub(/^src\//, "", public)
  if (("include/hetseq/" public) in exists) return "hetseq/" public
  if (stem in exists) { sub(/.*\//, "", stem); return stem }
  return ""
}
function is_within(inner, outer) { return index(inner "/", outer "/") == 1 }
function may_include(own, used,   pair, ends) {
  if (is_within(own, used) || is_within(used, own)) return 1
  for (pair in allowed) {
    split(pair, ends, ">")
    if (is_within(own, ends[1]) && is_within(used, ends[2])) return 1
  }
  return 0
}
function check_folder(used) {
  if (layer_of(file) == layer_of(used "/") && !may_include(folder_in_src(file), used))
    complain("the folder " folder_in_src(file) " includes \"" name "\" of the folder " used)
}
function folder_in_src(path) { sub(/^(src|include\/hetseq)\//, "", path); return folder_of(path) }
function check_layer(used) {
  if (!(used in rank)) complain("\"" name "\" is of no known layer (" order ")")
  else if (rank[used] > rank[layer_of(file)])
    complain(layer_of(file) " includes \"" name "\" of the layer " used " above it")
  else if ((layer_of(file) ">" used) in forbidden)
    complain(layer_of(file) " includes \"" name "\" of the layer " used ", which it must not know")
}
function check_private() {
  if (file ~ /^include\//) complain("a public header includes the private \"" name "\"")
  else if (name !~ /\.\.\// && (folder_of(file) "/" name) in exists) return
  else if (name ~ /\.\.\// || !(("src/" name) in exists) || layer_of(file) != layer_of("src/" name))
    complain("\"" name "\" is not a private header of its own folder or layer")
  else check_folder(folder_of(name))
}
BEGIN {
  order = "util options command_line report comm balance plan text data prepare state tools model optim task train session app python launcher"
  count = split(order, layers, " "); for (i = 1; i <= count; i++) rank[layers[i]] = i
  may = "app/commands>app/documents app/commands>app/lines app/commands>app/prediction app/commands>app/translation " \
    "app/prediction>app/lines app/translation>app/lines comm/nccl>comm/host comm/mixed>comm/host comm/mpi>comm/host comm/mixed>comm/mpi comm/mixed>comm/nccl " \
    "prepare/bert>prepare/files data/blocks>data/files data/blocks>data/hdf5 data/blocks>data/order data/files>data/hdf5 " \
    "data/loading>data/blocks data/loading>data/files data/loading>data/hdf5 data/loading>data/order text/subwords>text/bert train/agreement>train/watch train/record>train/checkpoint " \
    "train/record>train/shares balance/layout>balance/pipeline session/pipeline>session/ranks session/options>session/ranks model/decoding>model/kernels model/fused>model/kernels model/bert>model/files model/transformer>model/files model/decoding>model/transformer train/record>train/validation train/validation>train/shares util/files>util/process"
  # As docs/architecture.md says of layers which of those before them they never know.
  never = "balance>comm balance>report plan>comm plan>report text>comm text>balance text>plan data>text data>plan prepare>plan " \
    "state>comm state>text state>prepare tools>comm tools>data tools>prepare optim>data launcher>comm launcher>data launcher>model"
  count = split(never, pairs, " "); for (i = 1; i <= count; i++) forbidden[pairs[i]] = 1
  count = split(may, pairs, " "); for (i = 1; i <= count; i++) allowed[pairs[i]] = 1
  count = split(sources, paths, "\n"); for (i = 1; i <= count; i++) exists[paths[i]] = 1
}
{
  split($0, part, ":"); file = part[1]; line = part[2]
  if (!match($0, /[<"][^>"]+[>"]/)) next
  name = substr($0, RSTART + 1, RLENGTH - 2)
  quoted = substr($0, RSTART, 1) == "\""
  own = own_header(file)
  if (!(file in seen)) {
    seen[file] = 1
    if (own != "" && name != own) complain("its own header \"" own "\" is not its first include")
  }
  if (!quoted || name == "hetseq/version.hpp") next
  if (name ~ /^hetseq\//) { split(name, step, "/"); check_layer(step[2]); check_folder(folder_of(substr(name, 8))) }
  else check_private()
}
END { exit bad }'
