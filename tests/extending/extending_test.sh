#!/usr/bin/env bash
# usage: tests/extending/extending_test.sh BUILD_DIR CXX_COMPILER
# The worked example of docs/extending.md: a project of three files, outside the repository, built with an installed hetseq
# whose prefix was moved, trains on two ranks; and the document shows these files as they are.
build=$(realpath "${1:?usage: extending_test.sh BUILD_DIR CXX_COMPILER}")
compiler=${2:?usage: extending_test.sh BUILD_DIR CXX_COMPILER}
# shellcheck source=../end_to_end/common.sh
source "$(dirname "$0")/../end_to_end/common.sh" "$build/bin"
here=$(realpath "$(dirname "$0")")
package=lib/cmake/hetseq
prefixes=$(mktemp -d -p "$build")
trap 'rm -rf "$work" "$prefixes"' EXIT

# shown LANGUAGE: the document's code in that language.
shown() { sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/p" "$here/../../docs/extending.md" | sed '1d;$d'; }
diff <(shown cpp) "$here/softmax_regression.cpp" || fail 'docs/extending.md shows another program'
diff <(shown cmake) "$here/CMakeLists.txt" || fail 'docs/extending.md shows another CMakeLists.txt'
diff <(shown ini) "$here/softmax_regression.cfg" || fail 'docs/extending.md shows another configuration'

cmake --install "$build" --prefix "$prefixes/first" >"$work/log" || { cat "$work/log"; fail install; }
mv "$prefixes/first" "$prefixes/second"
installed=$prefixes/second
mapfile -t included < <(grep -rhoP '^#include "\K[^"]+' "$installed/include" | sort -u)
((${#included[@]})) || fail 'no header was installed'
for header in "${included[@]}"; do
  [[ -f $installed/include/$header ]] || fail "$header is included and was not installed"
done

mkdir "$work/project"
cp "$here"/{CMakeLists.txt,softmax_regression.cpp,softmax_regression.cfg} "$work/project/"
cd "$work/project" || exit
# configure ARGUMENT...: the project, with the installed hetseq.
configure() {
  cmake -S . -B build -G Ninja -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_PREFIX_PATH="$installed" "$@" >"$work/log" 2>&1
}
configure || { cat "$work/log"; fail configure; }
ninja -C build >"$work/log" 2>&1 || { cat "$work/log"; fail build; }

cd "$here/../.." || exit
make_images
cd "$work/project" || exit
run_ranks 2 build/softmax_regression train softmax_regression.cfg \
  --data "$work/data/train*.h5" --valid-data "$work/data/t10k*.h5" --save-dir run
expect_ok train
awk -v a="$(json run/summary.json valid.accuracy)" 'BEGIN {exit !(a > 0.99)}' || fail 'accuracy below 0.99'

# Its own option stands where the others do, and only with its model.
program=build/softmax_regression
grep -qx 'target-smoothing = 0.1' run/config.cfg || fail "config.cfg lacks the model's option"
"$program" train --help | grep -e '--target-smoothing X' >/dev/null || fail "--help lacks the model's option"
for document in man bash options; do
  "$program" document "$document" | tr -d '\134' | grep -e '--target-smoothing' >/dev/null || fail "$document lacks the model's option"
done
run_ranks 2 "$program" train run/config.cfg --max-epoch 1 --save-dir again
expect_ok 'a run from config.cfg'
grep -qx 'target-smoothing = 0.1' again/config.cfg || fail "config.cfg does not repeat the model's option"
run_ranks 2 "$program" train run/config.cfg --target-smoothing 0.2 --max-epoch 4 --save-dir run
expect_error 78 'none of the 3 checkpoints can be used'
grep -qF "its --target-smoothing is '0.1', this run's is '0.2'" "$work/log" || fail 'the difference is not named'
run_ranks 1 "$program" train softmax_regression.cfg --target-smoothing 2 --data "$work/data/train*.h5"
expect_error 78 "'2' is not a number from 0 to 1"
run_ranks 1 "$program" train --task mnist --data "$work/data/train*.h5" --target-smoothing 0.1 --max-epoch 1
expect_error 78 '--target-smoothing is not known here'
run_ranks 2 "$program" evaluate run
expect_ok "evaluate a run with the model's option"
run_ranks 1 "$bin/hetseq" train --task mnist --data "$work/data/train*.h5" --target-smoothing 0.1 --max-epoch 1
expect_error 78 "unknown option '--target-smoothing'"

# Its model answers lines: as many right as validation says, on two ranks, and a line that is none is named.
python3 - "$work/idx/t10k" "$work" <<'EOF'
import glob, gzip, sys
def bytes_of(kind, head):
    path = glob.glob(f"{sys.argv[1]}*{kind}*")[0]
    return (gzip.open if path.endswith(".gz") else open)(path, "rb").read()[head:]
images, labels = bytes_of("images", 16), bytes_of("labels", 8)
with open(f"{sys.argv[2]}/lines", "w") as lines:
    for i in range(len(labels)):
        print(*images[784 * i:784 * (i + 1)], file=lines)
open(f"{sys.argv[2]}/labels", "w").writelines(f"class {label}\n" for label in labels)
EOF
mpirun -np 2 "$program" predict run <"$work/lines" >"$work/answers" 2>"$work/log" || { cat "$work/log"; fail 'predict lines'; }
[[ $(wc -l <"$work/answers") == 200 ]] || fail 'not an answer for each line'
wrong=$(diff --suppress-common-lines -y "$work/answers" "$work/labels" | wc -l)
awk -v w="$wrong" -v a="$(json run/summary.json valid.best.accuracy)" 'BEGIN {exit !(w <= 200 * (1 - a) + 0.5)}' ||
  fail "$wrong of 200 answers are wrong"
rc=0; (head -n 2 "$work/lines"; echo 1 2 3) | "$program" predict run >"$work/answers" 2>"$work/log" || rc=$?
expect_error 65 'line 3: an image is 784 numbers'
[[ $(wc -l <"$work/answers") == 2 ]] || fail 'what stood before the bad line was not answered'

# Without the LibTorch that hetseq was built with: says so, and takes the one that is named.
recorded=$(sed -nE 's/^ *HINTS .* "([^"]+)" .*/\1/p' "$installed/$package/hetseqConfig.cmake")
[[ -d $recorded ]] || fail "no LibTorch is recorded in hetseqConfig.cmake: '$recorded'"
sed -i "s|\"$recorded\"|\"/no/such/libtorch\"|" "$installed/$package/hetseqConfig.cmake"
rm -rf build
if configure; then fail 'no error without LibTorch'; fi
tr -s ' \n' ' ' <"$work/log" | grep -qF -- '-DHETSEQ_LIBTORCH_DIR=/path/to/libtorch' || { cat "$work/log"; fail 'no advice'; }
configure -DHETSEQ_LIBTORCH_DIR="$(dirname "$recorded")" || { cat "$work/log"; fail 'the LibTorch that was named'; }
echo 'a project outside the tree was built with the moved prefix, and trained'
