#!/usr/bin/env bash
# A disk that is full, a quota, a run folder that is removed or read-only: named, ended in seconds where training cannot
# go on, and nothing that was saved is lost.
source "$(dirname "$0")/common.sh"
train+=(--save-interval-updates 2 --balance equal --keep-last 0 --max-update 30)
run=$work/run

# A quota on one rank's files, from the middle of the run on: its checkpoints fail, three times in a row is the end.
run_faulty 2 1:computing:5:file-limit=100000 "${train[@]}" --save-dir "$run"
expect_block 74 'checkpoints in a row could not be written .*' '2 ranks, '
grep -qE '\[rank 1 on .*is not saved: cannot write .*File too large' "$work/log" || { cat "$work/log"; fail 'the file is not named'; }
table 'quota, checkpoint'
run_ranks 2 "${train[@]}" --save-dir "$run"
expect_ok 'continued with space'
grep -q 'continues from .*update-0000000[24]' "$work/log" || { cat "$work/log"; fail 'not from the last whole checkpoint'; }

# The folder is removed: not made again, where half a run would be taken for one.
run_faulty 2 "0:computing:5:sh=mv $run $run-gone" "${train[@]}" --save-dir "$run" --overwrite
((rc == 74)) || { cat "$work/log"; fail "exit code $rc, expected 74 without a folder"; }
grep -qE 'cannot (make|write) .*No such file or directory' "$work/log" || { cat "$work/log"; fail 'the reason is not named'; }
[[ ! -e $run ]] || fail 'the folder was made again'
table 'folder removed'

# The disk fills up while a file is written: what was half written goes again, and the rest stays.
rm -rf "$run"
if mkdir "$run" && mount -t tmpfs -o size=128m none "$run" 2>/dev/null; then
  trap 'umount -l "$run" "$run" 2>/dev/null; rm -rf "$work"' EXIT
  run_faulty 2 "0:computing:5:sh=head -c 128m /dev/zero >$run/other 2>$work/ignored || true" "${train[@]}" --save-dir "$run"
  ((rc == 74)) || { cat "$work/log"; fail "exit code $rc, expected 74 with a full disk"; }
  grep -q 'No space left on device' "$work/log" || { cat "$work/log"; fail 'the reason is not named'; }
  table 'disk full'
  rm "$run/other"
  run_ranks 2 "${train[@]}" --max-update 8 --save-dir "$run" --keep-last 1
  expect_ok 'continued on the disk with space'
  [[ $(json "$run/summary.json" updates) == 8 ]] || fail 'did not come to its end'
  python3 -c 'import json, sys
updates = [json.loads(line)["update"] for line in open(sys.argv[1]) if json.loads(line)["kind"] == "train"]
assert updates == list(range(1, 9)), updates' "$run/metrics.jsonl" || fail 'metrics.jsonl'

  # A read-only file system over the folder: one that has open files cannot be made read-only.
  echo "mount -t tmpfs -o ro none $run" >"$work/read_only.sh"
  run_faulty 2 "0:computing:5:sh=sh $work/read_only.sh" "${train[@]}" --save-dir "$run" --overwrite --keep-last 2
  ((rc == 74)) || { cat "$work/log"; fail "exit code $rc, expected 74 with a folder made read-only"; }
  grep -q 'Read-only file system' "$work/log" || { cat "$work/log"; fail 'the reason is not named'; }
  table 'folder read-only'
  run_ranks 2 "${train[@]}" --save-dir "$run"
  expect_error 74 "cannot write into $run"
  umount "$run"
  umount "$run"
  trap 'rm -rf "$work"' EXIT
else
  echo 'no mounts here: the full disk and the read-only folder were left out'
fi
