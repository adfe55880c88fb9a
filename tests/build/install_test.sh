#!/usr/bin/env bash
# usage: tests/build/install_test.sh BUILD_DIR
# An installed hetseq still runs after its prefix was moved, with the libraries installed beside it; so does its Python
# package, where build/python can import it.
set -euo pipefail
build=$(realpath "${1:?usage: install_test.sh BUILD_DIR}")
fail() { echo "FAILED: $*"; exit 1; }
prefixes=$(mktemp -d -p "$build")
trap 'rm -rf "$prefixes"' EXIT

cmake --install "$build" --prefix "$prefixes/first" >"$prefixes/log" || { cat "$prefixes/log"; fail install; }
version=$("$prefixes/first/bin/hetseq" --version | cut -d' ' -f2)
for modulefile in "$prefixes/first/share/modulefiles/hetseq/$version"{,.lua}; do
  grep -qE "^(set|local) prefix .*[{[]$prefixes/first[]}]" "$modulefile" || fail "$modulefile names no prefix"
  ! grep -n '@[A-Za-z_]*@' "$modulefile" || fail "$modulefile is not filled in"
done
cmp <("$prefixes/first/bin/hetseq" document man) "$prefixes/first/share/man/man1/hetseq.1" || fail 'the man page'
for command in hetseq mpirun mpiexec srun; do
  cmp <("$prefixes/first/bin/hetseq" document bash) "$prefixes/first/share/bash-completion/completions/$command" ||
    fail "the completion of $command"
done
cmp <("$prefixes/first/bin/hetseq" document zsh) "$prefixes/first/share/zsh/site-functions/_hetseq" || fail 'the completion of zsh'
cmp <("$prefixes/first/bin/hetseq" document fish) "$prefixes/first/share/fish/vendor_completions.d/hetseq.fish" ||
  fail 'the completion of fish'
cmp inputs/mnist.cfg "$prefixes/first/share/hetseq/inputs/mnist.cfg" || fail inputs
diff -r docs "$prefixes/first/share/doc/hetseq" || fail docs
for script in "$prefixes/first"/share/hetseq/jobs/*; do
  grep -q 'docs/clusters.md (installed: share/doc/hetseq)' "$script" || fail "$script does not say where its page is"
  ! grep -q 'job\.sh' "$script" || fail "$script needs another file"
  diff <(tail -n "$(wc -l <jobs/job.sh)" "$script") jobs/job.sh || fail "$script lacks what all share"
done

mv "$prefixes/first" "$prefixes/second"
moved=$prefixes/second/bin/hetseq
env -i "$moved" --version | grep -q '^hetseq ' || fail 'the moved program does not run'
package=$prefixes/second/lib/hetseq/python
libraries=$(env -i PATH="$PATH" ldd "$moved" "$package/hetseq/lib/libhetseq_python.so")
! grep 'not found' <<<"$libraries" || fail 'libraries are missing'
! grep -F 'libhetseq.so' <<<"$libraries" | grep -vF "=> $prefixes/second/" || fail 'another libhetseq.so is taken'
if [[ -d $prefixes/second/lib/hetseq ]]; then
  ! grep -E 'libtorch|libc10|libgomp|libcudart' <<<"$libraries" | grep -vF "=> $prefixes/second/" ||
    fail 'these come from outside the prefix'
fi
if [[ -e build/python/.complete ]]; then
  library=$(env -i PATH="$PATH" PYTHONPATH="$package" build/python/bin/python -c \
    'import hetseq, hetseq._library as library; print(hetseq.__version__, library.find_library())')
  [[ $library == "$version $package/hetseq/lib/libhetseq_python.so" ]] || fail "Python took $library"
fi
echo "installed, moved and run"
