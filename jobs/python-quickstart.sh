#!/usr/bin/env bash
# From nothing to a model of one's own in Python, trained: sets up, builds, prepares Fashion-MNIST and trains with two
# ranks the CNN of inputs/python/fashion_mnist.py.
set -euo pipefail
source "$(dirname "$0")/common.sh"
usage_only 'usage: jobs/python-quickstart.sh
environment:
  HETSEQ_FASHION_MNIST   folder of its four gzip files (default: where Debian puts dataset-fashion-mnist)' "$@"

jobs/setup.sh --python
say 'building'
configure_and_build cpu hetseq hetseq_python

prepare_fashion_mnist

export PYTHONPATH=$PWD/python${PYTHONPATH:+:$PYTHONPATH}
train=(mpirun -np 2 build/python/bin/python -m hetseq train inputs/python/fashion_mnist.py:FashionMnist
  --data 'data/fashion-mnist/train*.h5' --valid-data 'data/fashion-mnist/t10k*.h5' --save-dir runs/fashion-mnist-python)
say "training: PYTHONPATH=python ${train[*]}"
allow_ranks 2
"${train[@]}" --overwrite 2>&1 | tee build/python-quickstart.log

say 'its last lines'
grep ' valid ' build/python-quickstart.log | tail -n 1
sed -n '/ finished: /,$p' build/python-quickstart.log
