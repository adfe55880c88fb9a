#!/usr/bin/env bash
# Three ranks on one host and one on another read the same corpora, with caches of unlike size.
source "$(dirname "$0")/common.sh"
cluster_up h1:slots=3 h2:slots=1

run_cluster 4 "$bin/two_hosts_data_test"
expect_ok 'two hosts'
cat "$work/log"
