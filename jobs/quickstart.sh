#!/usr/bin/env bash
# From nothing to a trained model: sets up, builds, prepares Fashion-MNIST and trains on it with two ranks.
set -euo pipefail
source "$(dirname "$0")/common.sh"
usage_only 'usage: jobs/quickstart.sh' "$@"

jobs/setup.sh
say 'building'
configure_and_build cpu hetseq

if ! compgen -G 'data/fashion-mnist/*.h5' >/dev/null; then
  say 'converting Fashion-MNIST to HDF5'
  build/cpu/bin/hetseq prepare images /usr/share/datasets/fashion-mnist/*.gz --output data/fashion-mnist
fi

say 'training: mpirun -np 2 build/cpu/bin/hetseq train inputs/fashion-mnist.cfg'
allow_ranks 2
mpirun -np 2 build/cpu/bin/hetseq train inputs/fashion-mnist.cfg --save-dir runs/fashion-mnist --overwrite 2>&1 |
  tee build/quickstart.log

say 'its last lines'
tail -n 4 build/quickstart.log
