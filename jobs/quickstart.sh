#!/usr/bin/env bash
# From nothing to a trained model: sets up, builds, prepares Fashion-MNIST and trains on it with two ranks.
set -euo pipefail
source "$(dirname "$0")/common.sh"
usage_only 'usage: jobs/quickstart.sh
environment:
  HETSEQ_FASHION_MNIST   folder of its four gzip files (default: where Debian puts dataset-fashion-mnist)' "$@"

jobs/setup.sh
say 'building'
configure_and_build cpu hetseq

prepare_fashion_mnist

train=(mpirun -np 2 build/cpu/bin/hetseq train inputs/fashion-mnist.cfg --data 'data/fashion-mnist/train*.h5'
  --valid-data 'data/fashion-mnist/t10k*.h5' --save-dir runs/fashion-mnist)
say "training: ${train[*]}"
allow_ranks 2
"${train[@]}" --overwrite 2>&1 | tee build/quickstart.log

say 'its last lines'
grep ' valid ' build/quickstart.log | tail -n 1
sed -n '/ finished: /,$p' build/quickstart.log
