#!/usr/bin/env bash
# Options, program or data that differ over ranks end the job before any work, with one message that names ranks.
source "$(dirname "$0")/../end_to_end/common.sh"
make_images
train=("$bin/hetseq" train --task mnist --max-sentences 8 --max-update 4 --save-dir "$work/run" --cache-dir none)
data=(--data "$work/data/train*.h5")

begin=$(date +%s)
run_ranks 1 "${train[@]}" "${data[@]}" --lr 0.1 : -np 2 "${train[@]}" "${data[@]}" --lr 0.2
expect_error 78 "--lr differs over ranks (here it is '0.2', on rank 0 '0.1')"
grep -q '\[ranks 1, 2\]\|\[ranks 1-2\]' "$work/log" || { cat "$work/log"; fail 'the ranks are not named'; }

# Another revision: the program with other letters in that place.
revision=$("$bin/hetseq" --version | sed 's/.*(\(.*\))/\1/')
other=$(tr '[:alnum:]' x <<<"$revision")
sed "s/$revision/$other/g" "$bin/../libexec/hetseq/hetseq-program" >"$work/other"
chmod +x "$work/other"
run_ranks 1 "${train[@]}" "${data[@]}" : -np 1 "$work/other" "${train[@]:1}" "${data[@]}" : -np 1 "${train[@]}" "${data[@]}"
expect_error 78 'the program differs over ranks'
grep -q "here it is hetseq .* ($other, LibTorch .*), on rank 0 hetseq .* ($revision, LibTorch .*)): .* \[rank 1 on " "$work/log" ||
  { cat "$work/log"; fail 'the programs are not named'; }

# Files of one name on unlike disks.
mkdir "$work/a" "$work/b"
cp "$work"/data/train*.h5 "$work/a"
cp "$work"/data/t10k-00000*.h5 "$work/b/$(basename "$work"/a/*00000*)"
cp "$work"/data/t10k-00001*.h5 "$work/b/$(basename "$work"/a/*00001*)"
run_ranks 1 -wdir "$work/a" "${train[@]}" --data '*.h5' : -np 1 -wdir "$work/b" "${train[@]}" --data '*.h5'
expect_error 65 'is not the same file on all ranks'
rm "$work"/b/*00001*
run_ranks 1 -wdir "$work/a" "${train[@]}" --data '*.h5' : -np 1 -wdir "$work/b" "${train[@]}" --data '*.h5'
expect_error 66 '[rank 1 on '
[[ ! -e $work/run ]] || fail 'a run was begun'
echo "five starts in $(($(date +%s) - begin)) s"
