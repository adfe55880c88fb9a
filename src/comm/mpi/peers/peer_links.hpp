#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "hetseq/comm/host_comm.hpp"

#include "peer_link.hpp"

namespace hetseq {

/// What passes between this rank and all its peers. One thread uses it, which alone calls MPI.
class PeerLinks {
public:
    /// Collective over `world`.
    PeerLinks(const HostComm& world,
              const std::vector<int>& peers,
              at::Device device,
              const PeerChannel::Options& options);

    /// In the order of `peers`.
    PeerLink& operator[](std::size_t index) { return links_[index]; }
    /// Starts what may start and takes in what has come or left; true when there was anything.
    bool advance();
    /// All has left, and no part of a message has come without the others.
    bool at_rest() const;
    /// Ends the receives of messages that have not come; at rest.
    void cancel() { messages_.cancel(); }

private:
    HostComm comm_;
    PeerLink::Messages messages_;
    std::deque<PeerLink> links_;
};

}  // namespace hetseq
