#!/usr/bin/env bash
# The tool that judges other tests' models: what it calls different.
source "$(dirname "$0")/common.sh"

# model NAME TYPE NUMBER...: $work/NAME, one tensor 'weight' of these numbers.
model() {
  python3 - "$work/$1" "${@:2}" <<'PY'
import json, struct, sys
path, kind, *numbers = sys.argv[1:]
data = struct.pack(f"<{len(numbers)}{'d' if kind == 'F64' else 'f'}", *map(float, numbers))
tensor = {"dtype": kind, "shape": [len(numbers)], "data_offsets": [0, len(data)]}
header = json.dumps({"weight": tensor}).encode()
header += b" " * (-len(header) % 8)
open(path, "wb").write(struct.pack("<Q", len(header)) + header + data)
PY
}
# expect CODE A B TOLERANCE [TEXT]
expect() {
  rc=0
  "$bin/compare_models" "$work/$2" "$work/$3" "$4" >"$work/log" 2>&1 || rc=$?
  ((rc == $1)) || { cat "$work/log"; fail "$2 and $3 at $4: exit code $rc, expected $1"; }
  grep -qF -- "${5:-}" "$work/log" || { cat "$work/log"; fail "$2 and $3 at $4: no word of $5"; }
}

model plain F64 1 2 3 4
model close F64 1 2 3 4.000001
model large F64 1000 2 3 4
model larger F64 1000.001 2 3 4
model single F32 1 2 3 4
model shorter F64 1 2 3
expect 0 plain plain 0 'largest difference 0'
expect 0 plain single 0
expect 1 plain close 0 'largest difference 2.5e-07'
expect 1 plain close 2e-7
expect 0 plain close 3e-7
expect 0 large larger 1.1e-6
expect 2 plain shorter 1 'weight is not the same tensor'
expect 2 plain none 1

# What is not finite is different from everything, itself included, wherever it stands.
model nan F64 50 nan 3 4
model nan_first F64 nan 2 3 4
model nan_last F32 1 2 3 nan
model infinite F64 1 2 inf 4
expect 1 nan plain 0 'element 1, is not finite: nan and 2'
expect 1 plain nan 1e9
expect 1 nan nan 0
expect 1 nan_first plain 0
expect 1 plain nan_last 0 'element 3, is not finite: 4 and nan'
expect 1 infinite plain inf
expect 1 infinite infinite 0 'is not finite: inf and inf'
