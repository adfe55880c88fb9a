#!/usr/bin/env bash
# A host has the link that it asks for, and the others have that of --rate: each way, from the host and to it.
source "$(dirname "$0")/common.sh"
cluster_up h1:slots=1,rate=25mbit h2:slots=1 --rate 100mbit

for want in 'h1 25Mbit' 'h2 100Mbit'; do
  read -r host rate <<<"$want"
  for way in "$("$vcluster" exec "$host" tc qdisc show dev eth0)" "$(tc qdisc show dev "vc-$host")"; do
    grep -q "tbf .* rate $rate " <<<"$way" || fail "$host has '$way' and not $rate"
  done
done

"$vcluster" down
"$vcluster" up h1:rate=1gbit h2
! tc qdisc show dev vc-h2 | grep -q tbf || fail 'h2 is limited without a rate'
tc qdisc show dev vc-h1 | grep -q 'rate 1Gbit' || fail 'h1 is not limited'
