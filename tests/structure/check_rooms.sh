#!/usr/bin/env bash
# usage: tests/structure/check_rooms.sh ROOT
# Refuses a folder of ROOT/src and ROOT/include/hetseq with more than 20 units: beyond that, names no longer tell where
# things are. A unit is a header and its source, wherever they lie.
set -euo pipefail
cd "${1:?usage: check_rooms.sh ROOT}"
most=20

find src include/hetseq -name '*.cpp' -o -name '*.hpp' -o -name '*.cu' -o -name '*.cuh' | sed -E 's!^(src|include/hetseq)/!!; s/\.[a-z]+$//' |
  sort -u | sed 's![^/]*$!!' | sort | uniq -c |
  awk -v most=$most '$1 > most { print "src/" $2 " holds " $1 " units, more than " most ": give some a folder of their own"; bad = 1 }
                     { ++folders } END { exit bad || !folders }'
