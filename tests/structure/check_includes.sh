#!/usr/bin/env bash
# usage: tests/structure/check_includes.sh ROOT
# Refuses, in ROOT/src and ROOT/include: an include that looks up a layer, a private header of another folder, and a
# source that does not include its own header first.
set -euo pipefail
cd "${1:?usage: check_includes.sh ROOT}"

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
function check_layer(used) {
  if (!(used in rank)) complain("\"" name "\" is of no known layer (" order ")")
  else if (rank[used] > rank[layer_of(file)])
    complain(layer_of(file) " includes \"" name "\" of the layer " used " above it")
}
function check_private() {
  if (file ~ /^include\//) complain("a public header includes the private \"" name "\"")
  else if (name ~ /\.\.\// || !((folder_of(file) "/" name) in exists || ("src/" layer_of(file) "/" name) in exists))
    complain("\"" name "\" is no private header of its own folder")
}
BEGIN {
  order = "util report comm balance text data model optim task train app"
  count = split(order, layers, " "); for (i = 1; i <= count; i++) rank[layers[i]] = i
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
  if (name ~ /^hetseq\//) { split(name, step, "/"); check_layer(step[2]) }
  else check_private()
}
END { exit bad }'
