#!/usr/bin/env bash
# jobs/scaling/run.sh: runs of several sizes, their table and their plot.
source "$(dirname "$0")/common.sh"
command -v python3 >/dev/null || skip 'no python3, which makes the table'
make_images
printf 'task = mnist\ndata = %s/data/train*.h5\nmax-sentences = 8\nbatch-size = 16\nmax-update = 12\ncache-dir = %s/cache\n' \
  "$work" "$work" >"$work/small.cfg"

HETSEQ=$bin/hetseq "$(dirname "$0")/../../jobs/scaling/run.sh" weak "$work/small.cfg" "$work/weak" 1 2 -- --threads 1 \
  >"$work/log" 2>&1 || { cat "$work/log"; fail 'the runs'; }
grep -q '^| 1 | 1 | 1 | 16 ' "$work/log" || { cat "$work/log"; fail 'no row for one rank'; }
grep -q '^| 2 | 1 | 2 | 32 ' "$work/log" || { cat "$work/log"; fail 'the batch does not grow with the ranks'; }
python3 -c 'import sys, xml.dom.minidom as xml; assert len(xml.parse(sys.argv[1]).getElementsByTagName("circle")) == 2' \
  "$work/weak/scaling.svg" || fail 'the plot'

rc=0
"$(dirname "$0")/../../jobs/scaling/run.sh" sideways "$work/small.cfg" "$work/other" 1 >"$work/log" 2>&1 || rc=$?
expect_error 64 'usage: jobs/scaling/run.sh'
