#include "peer_links.hpp"

#include <algorithm>

#include "hetseq/comm/mpi/mpi_handle.hpp"

namespace hetseq {

PeerLinks::PeerLinks(const HostComm& world,
                     const std::vector<int>& peers,
                     at::Device device,
                     const PeerChannel::Options& options)
    : comm_{world.duplicate()}, messages_{mpi_handle(comm_)} {
    for (const int peer : peers)
        links_.emplace_back(peer, device, options);
}

bool PeerLinks::advance() {
    bool moved = false;
    for (PeerLink& link : links_)
        moved = link.start(messages_) || moved;
    for (const PeerLink::Label& label : messages_.take_complete()) {
        label.link->complete(label);
        moved = true;
    }
    return moved;
}

bool PeerLinks::at_rest() const {
    return std::all_of(links_.begin(), links_.end(), [](const PeerLink& link) {
        return link.unsent() == 0 && link.between_messages();
    });
}

}  // namespace hetseq
