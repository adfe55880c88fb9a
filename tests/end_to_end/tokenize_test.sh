#!/usr/bin/env bash
# hetseq tokenize: lines in, ids or pieces out, one line for each; options and errors.
source "$(dirname "$0")/common.sh"

printf '%s\n' '[UNK]' '[MASK]' '[' ']' mask hello world '##s' naive naïve ',' Hello >"$work/vocab.txt"
# tokenizes EXPECTED TEXT OPTION...: the lines printed for TEXT, which printf writes.
tokenizes() {
  local expected=$1 text=$2; shift 2
  # shellcheck disable=SC2059
  printf "$text" | "$bin/hetseq" tokenize --vocab "$work/vocab.txt" "$@" >"$work/out" || fail "tokenize $*"
  [[ $(cat "$work/out"; echo .) == "$(printf '%b.' "$expected")" ]] || { cat "$work/out"; fail "tokenize $* of '$text'"; }
}

tokenizes '5 10 6 7\n\n0\n' 'Hello, worlds\n\nother\n'
tokenizes '5\n8\n' 'hello\r\nNaïve'
tokenizes '5\n' '\357\273\277hello\r\n'
tokenizes '' ''
tokenizes '\n' '\n'
tokenizes '11 9\n' 'Hello naïve\n' --cased
tokenizes '8\n' 'naïve\n' --cased --accents strip
tokenizes '9\n' 'NAÏVE\n' --accents keep
tokenizes 'hello , world ##s\n' 'hello, worlds\n' --tokens
tokenizes '2 4 3\n' '[MASK]\n'
tokenizes '1\n' '[MASK]\n' --keep-special
tokenizes '6\n0\n' 'world\nworlds\n' --max-word-characters 5
tokenizes '5 6\n' 'hel\377lo wo\342\202rld\n'

# More than one read, and a line across two of them.
awk 'BEGIN {for (i = 0; i < 200000; i++) print "hello worlds, naive"; print "Hello"}' >"$work/long.txt"
"$bin/hetseq" tokenize --vocab "$work/vocab.txt" <"$work/long.txt" >"$work/out"
[[ $(sort "$work/out" | uniq -c | awk '{$1 = $1; print}') == '1 5
200000 5 6 7 10 8' ]] || fail 'a long text'
printf 'a\n' | "$bin/hetseq" tokenize --vocab "$work/vocab.txt" | :  # nobody reads

# Endless lines end with their reader.
codes=(); yes hello | timeout 60 "$bin/hetseq" tokenize --vocab "$work/vocab.txt" 2>"$work/log" |
  head -n 1 >"$work/out" || codes=("${PIPESTATUS[@]}")
[[ ${codes[*]:1:1} == 141 && $(cat "$work/out") == 5 && ! -s $work/log ]] || fail "without a reader: ${codes[*]}"

printf 'hello\nhello\rworld\n' >"$work/returns"
rc=0; "$bin/hetseq" tokenize --vocab "$work/vocab.txt" <"$work/returns" >"$work/out" 2>"$work/log" || rc=$?
expect_error 65 'standard input, line 2 holds a carriage return'
[[ $(cat "$work/out") == 5 ]] || fail 'the lines before are not answered'

rc=0; "$bin/hetseq" tokenize </dev/null 2>"$work/log" || rc=$?
expect_error 78 '--vocab'
rc=0; "$bin/hetseq" tokenize --vocab "$work/none" </dev/null 2>"$work/log" || rc=$?
expect_error 66 'none'
rc=0; "$bin/hetseq" tokenize --vocab "$work/vocab.txt" --accents away </dev/null 2>"$work/log" || rc=$?
expect_error 78 "--accents: 'away' is not one of keep, strip"
printf 'a\na\n' >"$work/twice.txt"
rc=0; "$bin/hetseq" tokenize --vocab "$work/twice.txt" </dev/null 2>"$work/log" || rc=$?
expect_error 65 "line 2 repeats a piece ('a' is in line 1 already)"
rc=0; "$bin/hetseq" tokenize --vocab "$work/vocab.txt" <"$work" 2>"$work/log" || rc=$?
expect_error 74 'cannot read standard input'
echo "lines become what they should"
