#!/usr/bin/env bash
# jobs/gpu-check.sh on machines without a GPU ends at once, says so, and does not succeed. The machine is played by
# small programs on PATH.
# shellcheck disable=SC2016  # the programs' own variables
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { cat "$work/log"; echo "FAILED: $*"; exit 1; }
mkdir "$work/bin" "$work/tools"
for tool in bash dirname grep cat; do ln -s "$(command -v "$tool")" "$work/tools/$tool"; done

# ends EXIT_CODE TEXT PATH ARGUMENT...
ends() {
  local expected=$1 text=$2 path=$3 rc=0; shift 3
  PATH=$path bash jobs/gpu-check.sh "$@" >"$work/log" 2>&1 || rc=$?
  ((rc == expected)) || fail "exit code $rc, expected $expected"
  grep -qF -- "$text" "$work/log" || fail "no word of '$text'"
}
# nvidia_smi SCRIPT
nvidia_smi() { printf '#!/bin/bash\n%s\n' "$1" >"$work/bin/nvidia-smi"; chmod +x "$work/bin/nvidia-smi"; }

ends 71 'no GPU: there is no nvidia-smi' "$work/tools"
nvidia_smi 'echo "NVIDIA-SMI has failed because it could not communicate with the NVIDIA driver."; exit 9'
ends 71 'no GPU: nvidia-smi failed (NVIDIA-SMI has failed' "$work/bin:$PATH"
nvidia_smi 'echo "No devices found."'
ends 71 'no GPU: nvidia-smi lists none' "$work/bin:$PATH"
ends 64 'usage: jobs/gpu-check.sh' "$work/bin:$PATH" some
[[ ! -e build/gpu-check ]] || [[ ! build/gpu-check -nt $work/bin ]] || fail 'it began nevertheless'
echo 'without a GPU the check ends with 71 and says why'
