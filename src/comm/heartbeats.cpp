#include "hetseq/comm/heartbeats.hpp"

#include <algorithm>
#include <thread>
#include <type_traits>
#include <vector>

#include <mpi.h>

#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/mpi/mpi_handle.hpp"
#include "hetseq/comm/mpi/mpi_try.hpp"

namespace hetseq {

static_assert(std::is_trivially_copyable_v<Beat>);

namespace {

constexpr int heartbeat_tag = 0;

// One other rank, with a beat to it and one from it. Each may be under way.
struct Peer {
    int rank = 0;
    Beat outgoing;
    Beat incoming;
    MPI_Request send = MPI_REQUEST_NULL;
    MPI_Request receive = MPI_REQUEST_NULL;
    bool told_last = false;
    bool heard_last = false;

    bool gone() const noexcept { return told_last && heard_last && send == MPI_REQUEST_NULL; }
};

// A null request is complete.
bool complete(MPI_Request& request) {
    int flag = 0;
    MPI_TRY(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
    return flag != 0;
}

}  // namespace

struct Heartbeats::Impl {
    explicit Impl(const HostComm& world) : comm{world.duplicate()} {
        if (comm.rank() != 0) {
            peers.resize(1);
        } else {
            peers.resize(static_cast<std::size_t>(comm.size() - 1));
            for (std::size_t i = 0; i < peers.size(); ++i)
                peers[i].rank = static_cast<int>(i) + 1;
        }
        for (Peer& peer : peers)
            await(peer);
    }

    void await(Peer& peer) {
        MPI_TRY(MPI_Irecv(&peer.incoming,
                          sizeof(Beat),
                          MPI_BYTE,
                          peer.rank,
                          heartbeat_tag,
                          mpi_handle(comm),
                          &peer.receive));
    }

    void send(Peer& peer, const Beat& beat) {
        if (peer.told_last || !complete(peer.send))
            return;
        peer.outgoing = beat;
        peer.told_last = beat.last;
        MPI_TRY(MPI_Isend(&peer.outgoing,
                          sizeof(Beat),
                          MPI_BYTE,
                          peer.rank,
                          heartbeat_tag,
                          mpi_handle(comm),
                          &peer.send));
        complete(peer.send);
    }

    bool gone() const {
        return std::all_of(
            peers.begin(), peers.end(), [](const Peer& peer) { return peer.gone(); });
    }

    HostComm comm;
    std::vector<Peer> peers;  // of fixed size: MPI knows the places
};

Heartbeats::Heartbeats(const HostComm& world) : impl_{std::make_unique<Impl>(world)} {}

Heartbeats::~Heartbeats() {
    if (!impl_->gone())
        static_cast<void>(impl_.release());
}

int Heartbeats::rank() const noexcept {
    return impl_->comm.rank();
}

int Heartbeats::size() const noexcept {
    return impl_->comm.size();
}

void Heartbeats::send(const Activity& own, const std::string& role) {
    Beat beat{.activity = own};
    role.copy(beat.role.data(), beat.role.size() - 1);
    for (Peer& peer : impl_->peers)
        impl_->send(peer, beat);
}

void Heartbeats::receive(const std::function<void(int rank, const Beat& beat)>& heard) {
    for (Peer& peer : impl_->peers)
        while (!peer.heard_last && complete(peer.receive)) {
            const Beat beat = peer.incoming;
            peer.heard_last = beat.last;
            if (!beat.last)
                impl_->await(peer);
            heard(peer.rank, beat);
        }
}

bool Heartbeats::finish(std::chrono::milliseconds limit) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    const Beat last{.activity = activity::now(), .last = true};
    for (;;) {
        for (Peer& peer : impl_->peers) {
            impl_->send(peer, last);
            complete(peer.send);
        }
        receive([](int, const Beat&) {});
        if (impl_->gone())
            return true;
        if (std::chrono::steady_clock::now() > deadline)
            return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

}  // namespace hetseq
