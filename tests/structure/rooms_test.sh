#!/usr/bin/env bash
# No folder holds more units than a reader can survey, and the check would notice one that does.
set -euo pipefail
check=tests/structure/check_rooms.sh

bash $check . || { echo "FAILED: the folders above"; exit 1; }

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree"/src/util/files "$tree"/include/hetseq/util
for ((i = 0; i < 20; ++i)); do touch "$tree/src/util/u$i.cpp" "$tree/include/hetseq/util/u$i.hpp" "$tree/src/util/files/f$i.cpp"; done
bash $check "$tree" || { echo "FAILED: twenty units are refused"; exit 1; }
touch "$tree/include/hetseq/util/one_more.hpp"
if bash $check "$tree" >"$tree/log"; then echo "FAILED: 21 units are taken"; exit 1; fi
grep -qF 'src/util/ holds 21 units' "$tree/log" || { cat "$tree/log"; echo "FAILED: the folder is not named"; exit 1; }
echo "rooms are in order"
