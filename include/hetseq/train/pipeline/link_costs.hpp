#pragma once

#include <string>
#include <vector>

#include <c10/core/Device.h>

namespace hetseq {

class HostComm;
class PeerChannel;

/// A message of n MiB from one rank to another takes latency_ms + n * ms_per_mb.
struct LinkCost {
    double latency_ms = 0;
    double ms_per_mb = 0;
};

/// What was measured of all ranks.
struct MeasuredLinks {
    std::vector<std::vector<LinkCost>> between;  // [from][to]
    std::vector<double> cpu_ms_per_mb;  // by rank: its processor time for a MiB, sent or received
};

/// Collective. Measures messages between ranks of `world`, by `channel`, whose peers are all of
/// them. Two hosts are measured by their first ranks, so that no other message takes their cards;
/// each two ranks of one host are. `hosts`: names by rank. Returns the same on all ranks; a rank's
/// link to itself costs nothing. Processor times are those of messages between hosts, where there
/// are several.
MeasuredLinks measure_links(const HostComm& world,
                            PeerChannel& channel,
                            at::Device device,
                            const std::vector<std::string>& hosts);

/// Whom `rank` of `ranks` meets in `round` of a tournament in which each two meet once, in
/// [0, rounds) where there are `ranks` - 1 rounds, or `ranks` for an odd number; -1: nobody.
int opponent(int rank, int ranks, int round);

}  // namespace hetseq
