#!/usr/bin/env bash
# The layers include only those above them in the table of docs/architecture.md, and the check would notice otherwise.
set -euo pipefail
check=tests/structure/check_includes.sh

bash $check . || { echo "FAILED: the includes above"; exit 1; }

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
# refuses FILE INCLUDE TEXT: a tree whose FILE includes so is refused with TEXT.
refuses() {
  rm -rf "${tree:?}"/*
  mkdir -p "$tree"/src/{util,comm,data,train} "$tree"/include/hetseq/{util,comm,train} "$tree"/src/train/{record,watch,shares} "$tree"/tests/train
  touch "$tree"/src/comm/private.hpp "$tree"/include/hetseq/{util/error,comm/agree,train/trainer}.hpp
  touch "$tree"/src/train/{loop,record/table,watch/clock,shares/plan}.hpp
  echo "#include $2" >"$tree/$1"
  if bash $check "$tree" >"$tree/log"; then echo "FAILED: $1 may include $2"; exit 1; fi
  grep -qF "$3" "$tree/log" || { cat "$tree/log"; echo "FAILED: no word of '$3'"; exit 1; }
}
refuses src/comm/agree.cpp '"hetseq/util/error.hpp"' 'its own header "hetseq/comm/agree.hpp" is not its first'
refuses src/comm/host_request.cpp '"hetseq/train/trainer.hpp"' 'of the layer train above it'
refuses include/hetseq/util/error.hpp '"hetseq/comm/agree.hpp"' 'of the layer comm above it'
refuses src/data/text.cpp '"hetseq/text/words.hpp"' 'of the layer text, which it must not know'
refuses src/train/other.cpp '"private.hpp"' 'not a private header of its own folder'
refuses src/train/other.cpp '"../comm/private.hpp"' 'not a private header of its own folder'
refuses include/hetseq/comm/agree.hpp '"private.hpp"' 'a public header includes the private'
refuses src/train/other.cpp '"hetseq/misc/things.hpp"' 'of no known layer'
refuses src/train/other.cpp '"comm/private.hpp"' 'not a private header of its own folder or layer'
refuses src/train/watch/other.cpp '"train/record/table.hpp"' 'the folder train/watch includes "train/record/table.hpp" of the folder train/record'
refuses tests/train/other_test.cpp '<torch/torch.h>' 'include the headers of what is used'
refuses src/train/other.cpp '<ATen/ATen.h>' 'include the headers of what is used'
echo 'const auto json = Json::parse(text);' >"$tree"/src/train/other.cpp
if bash $check "$tree" >"$tree/log"; then echo 'FAILED: a source may parse by itself'; exit 1; fi
grep -qF 'call parse_json' "$tree/log"

# Folders may include their layer's own headers, those that the check lists, and are open to the layer's own files.
rm -rf "${tree:?}"/*
mkdir -p "$tree"/src/train/{record,watch,shares} "$tree"/include
touch "$tree"/src/train/{loop,record/table,watch/clock,shares/plan}.hpp
echo '#include "train/loop.hpp"' >"$tree"/src/train/watch/other.cpp
echo '#include "train/shares/plan.hpp"' >"$tree"/src/train/record/other.cpp
echo '#include "train/watch/clock.hpp"' >"$tree"/src/train/other.cpp
bash $check "$tree" || { echo "FAILED: the includes above are refused"; exit 1; }
echo "includes are in order"
