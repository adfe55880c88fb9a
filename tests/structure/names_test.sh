#!/usr/bin/env bash
# No name is defined twice in namespace hetseq, and the check would notice otherwise.
set -euo pipefail
command -v python3 >/dev/null || { echo 'SKIPPED: no python3'; exit 77; }
check=(python3 tests/structure/check_names.py)

"${check[@]}" . || { echo "FAILED: the names above"; exit 1; }

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
# with FIRST SECOND: a tree of two files that define these, one in a header, one in a source.
with() {
  rm -rf "${tree:?}"/*
  mkdir -p "$tree"/src/comm "$tree"/include/hetseq/balance
  printf '#pragma once\nnamespace hetseq {\n%s\n}  // namespace hetseq\n' "$1" >"$tree/include/hetseq/balance/first.hpp"
  printf '#include "first.hpp" // {\nnamespace hetseq {\n%s\n}\n' "$2" >"$tree/src/comm/${3:-second.cpp}"
}
refuses() {
  with "$1" "$2"
  if "${check[@]}" "$tree" >"$tree/log"; then cat "$tree/log"; echo "FAILED: accepts $1 beside $2"; exit 1; fi
  grep -qF "include/hetseq/balance/first.hpp, src/comm/second.cpp: the $3 is defined" "$tree/log" ||
    { cat "$tree/log"; echo "FAILED: no word of '$3'"; exit 1; }
}
accepts() {
  with "$@"
  "${check[@]}" "$tree" >"$tree/log" || { cat "$tree/log"; echo "FAILED: refuses $1 beside $2"; exit 1; }
}
refuses 'struct Outcome { double x = 0; };' 'class Outcome final : public Base<int> { void wait(); };' 'type hetseq::Outcome'
refuses 'enum class Way : char { up };' 'using Way = int;' 'type hetseq::Way'
refuses 'namespace detail { struct A {}; }' 'namespace detail { template <class T> union A { T x; }; }' 'type hetseq::detail::A'
refuses 'inline double twice(double x) { return x + x; }' 'double twice(double number) { return 2 * number; }' \
  'function hetseq::twice(double)'
refuses 'struct S { S(int i); int i; };' 'S::S(int i) : i{i} {} struct S {};' 'type hetseq::S'
accepts 'double twice(double x);' 'double twice(double x) { return 2 * x; }'
accepts 'inline int twice(int x) { return 2 * x; }' 'double twice(double x) { return 2 * x; }'
accepts 'struct Outcome { int x; };' 'namespace { struct Outcome { double y; }; } static int f() { return 1; }'
accepts 'struct Outcome { int x; };' 'namespace other { struct Outcome { double y; }; }'
accepts 'struct Outcome { int x; };' 'struct Loader { struct Outcome { double y; }; }; struct Outcome; // struct Outcome {}'
accepts 'inline int f() { return 1; }' 'int f() { return 0; }' first_no_cuda.cpp
echo "no name is defined twice"
