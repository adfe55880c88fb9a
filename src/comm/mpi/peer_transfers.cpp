#include "hetseq/comm/mpi/peer_transfers.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <limits>
#include <string>
#include <utility>

#include <mpi.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/files/checksum.hpp"
#include "hetseq/util/process/activity.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/mpi/mpi_handle.hpp"
#include "hetseq/comm/mpi/mpi_try.hpp"

#include "comm/backoff.hpp"

namespace hetseq {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int piece_tag = 0;

// Some of the transfers, piece by piece.
class PieceQueue {
public:
    struct Piece {
        std::size_t transfer;
        std::size_t begin;  // bytes, in the transfer
        std::size_t bytes;
    };

    template <class IsMine>
    PieceQueue(const std::vector<PeerTransfer>& transfers, std::size_t piece_bytes, IsMine is_mine)
        : transfers_{transfers}, piece_bytes_{piece_bytes} {
        for (std::size_t i = 0; i < transfers.size(); ++i)
            if (transfers[i].bytes > 0 && is_mine(transfers[i]))
                chosen_.push_back(i);
    }

    bool empty() const noexcept { return next_ == chosen_.size(); }
    Piece front() const {
        const std::size_t transfer = chosen_[next_];
        return {transfer, begin_, std::min(piece_bytes_, transfers_[transfer].bytes - begin_)};
    }
    void pop() {
        begin_ += front().bytes;
        if (begin_ == transfers_[chosen_[next_]].bytes) {
            begin_ = 0;
            ++next_;
        }
    }
    /// All its pieces are in front again.
    void rewind() noexcept { next_ = begin_ = 0; }

    std::size_t pieces() const {
        std::size_t sum = 0;
        for (const std::size_t i : chosen_)
            sum += (transfers_[i].bytes + piece_bytes_ - 1) / piece_bytes_;
        return sum;
    }
    std::size_t largest_piece() const {
        std::size_t largest = 0;
        for (const std::size_t i : chosen_)
            largest = std::max(largest, std::min(piece_bytes_, transfers_[i].bytes));
        return largest;
    }

private:
    const std::vector<PeerTransfer>& transfers_;
    std::size_t piece_bytes_;
    std::vector<std::size_t> chosen_;  // of the transfers
    std::size_t next_ = 0;             // of those chosen
    std::size_t begin_ = 0;            // bytes of it that came before
};

struct Destination {
    int rank;
    PieceQueue pieces;
};

bool crosses(const PeerTransfer& transfer) noexcept {
    return transfer.from != transfer.to && transfer.bytes > 0;
}

bool any_crosses(const std::vector<PeerTransfer>& transfers) noexcept {
    return std::any_of(transfers.begin(), transfers.end(), crosses);
}

// Where one rank waits for a piece that another never sends, all would wait for ever.
void check_alike(const HostComm& world, const std::vector<PeerTransfer>& transfers) {
    Xxh64 hash;
    for (const PeerTransfer& transfer : transfers) {
        const std::uint64_t numbers[] = {static_cast<std::uint64_t>(transfer.from),
                                         static_cast<std::uint64_t>(transfer.to),
                                         transfer.bytes};
        hash.update(numbers, sizeof numbers);
    }
    const auto own = static_cast<std::int64_t>(hash.digest());
    const std::int64_t least = world.all_reduce(own, ReduceOp::min);
    HETSEQ_ASSERT(least == world.all_reduce(own, ReduceOp::max));
}

}  // namespace

struct PeerTransfers::Impl {
    Impl(const HostComm& world, std::vector<PeerTransfer> list, const Options& chosen)
        : transfers{std::move(list)},
          options{chosen},
          rank{world.rank()},
          comm{any_crosses(transfers) ? world.duplicate() : HostComm::serial()},
          received{transfers,
                   options.piece_bytes,
                   [&](const PeerTransfer& t) { return t.to == rank && t.from != rank; }},
          taken{
              transfers, options.piece_bytes, [&](const PeerTransfer& t) { return t.to == rank; }} {
        for (int peer = 0; peer < world.size(); ++peer) {
            PieceQueue pieces{transfers, options.piece_bytes, [&](const PeerTransfer& t) {
                                  return t.from == rank && t.to == peer;
                              }};
            if (peer != rank && !pieces.empty())
                destinations.push_back({peer, std::move(pieces)});
        }
        slot_bytes = received.largest_piece();
        slots = std::min(received.pieces(),
                         std::max<std::size_t>(1, options.window_bytes / options.piece_bytes));
        window.resize(slots * slot_bytes);
        requests.assign(options.most_sent * destinations.size() + slots, MPI_REQUEST_NULL);
        complete_ones.resize(requests.size());
    }

    void rewind() noexcept {
        for (Destination& destination : destinations)
            destination.pieces.rewind();
        received.rewind();
        taken.rewind();
        receives_started = receives_taken = 0;
    }

    bool complete() const {
        return taken.empty() &&
               std::all_of(destinations.begin(),
                           destinations.end(),
                           [](const Destination& d) { return d.pieces.empty(); }) &&
               std::all_of(requests.begin(), requests.end(), [](MPI_Request request) {
                   return request == MPI_REQUEST_NULL;
               });
    }

    /// True when anything moved.
    bool advance(const Take& take) {
        start_sends();
        start_receives();
        const bool arrived = test();
        return take_next(take) || arrived;
    }

    // In the order of the list for each destination: so none waits for what a slow one takes.
    void start_sends() {
        for (std::size_t d = 0; d < destinations.size(); ++d)
            for (std::size_t i = 0; i < options.most_sent; ++i) {
                MPI_Request& request = requests[d * options.most_sent + i];
                if (request == MPI_REQUEST_NULL && !destinations[d].pieces.empty())
                    send_next(destinations[d], request);
            }
    }
    // Complete when the receiver has begun to receive it: MPI would keep any number of short
    // messages there for it.
    void send_next(Destination& to, MPI_Request& request) const {
        const PieceQueue::Piece piece = to.pieces.front();
        MPI_TRY(MPI_Issend(data_of(piece),
                           static_cast<int>(piece.bytes),
                           MPI_BYTE,
                           to.rank,
                           piece_tag,
                           mpi_handle(comm),
                           &request));
        to.pieces.pop();
    }
    void start_receives() {
        for (; !received.empty() && receives_started - receives_taken < slots; received.pop()) {
            const PieceQueue::Piece piece = received.front();
            MPI_TRY(MPI_Irecv(slot(receives_started),
                              static_cast<int>(piece.bytes),
                              MPI_BYTE,
                              transfers[piece.transfer].from,
                              piece_tag,
                              mpi_handle(comm),
                              &slot_request(receives_started)));
            ++receives_started;
        }
    }
    // One call for all: each makes MPI look at its network. What is complete becomes null.
    bool test() {
        if (requests.empty())
            return false;
        int count = 0;
        MPI_TRY(MPI_Testsome(static_cast<int>(requests.size()),
                             requests.data(),
                             &count,
                             complete_ones.data(),
                             MPI_STATUSES_IGNORE));
        return count != MPI_UNDEFINED && count > 0;
    }
    bool take_next(const Take& take) {
        if (taken.empty())
            return false;
        const PieceQueue::Piece piece = taken.front();
        const std::byte* data = nullptr;
        if (transfers[piece.transfer].from == rank)
            data = data_of(piece);
        else if (slot_request(receives_taken) == MPI_REQUEST_NULL)
            data = slot(receives_taken++);
        else
            return false;
        taken.pop();
        give(take, piece.transfer, {data, piece.bytes});
        return true;
    }
    void give(const Take& take, std::size_t transfer, std::span<const std::byte> piece) {
        try {
            if (!failure)
                take(transfer, piece);
        } catch (...) {
            failure = std::current_exception();
        }
    }

    const std::byte* data_of(const PieceQueue::Piece& piece) const {
        return static_cast<const std::byte*>(transfers[piece.transfer].data) + piece.begin;
    }
    std::byte* slot(std::size_t receive) { return window.data() + receive % slots * slot_bytes; }
    MPI_Request& slot_request(std::size_t receive) {
        return requests[options.most_sent * destinations.size() + receive % slots];
    }

    std::string awaited() const {
        if (!taken.empty())
            return "rank " + std::to_string(transfers[taken.front().transfer].from);
        for (std::size_t i = 0; i < options.most_sent * destinations.size(); ++i)
            if (requests[i] != MPI_REQUEST_NULL)
                return "rank " + std::to_string(destinations[i / options.most_sent].rank);
        return "the other ranks";
    }
    void check_wait(Clock::time_point last_movement) const {
        if (abandoned.load(std::memory_order_relaxed))
            throw CommError("transfers between ranks were abandoned", "this rank is ending");
        if (Clock::now() - last_movement > options.deadline)
            throw CommError(
                "transfers between ranks did not go on within their deadline",
                std::to_string(options.deadline.count() / 1000) + " s without a movement from " +
                    awaited(),
                "check whether that rank has ended or stalled, and check its network link");
    }

    std::vector<PeerTransfer> transfers;
    Options options;
    int rank;
    HostComm comm;
    std::vector<Destination> destinations;
    PieceQueue received;               // from others; those in front are not started
    PieceQueue taken;                  // also from this rank
    std::size_t receives_started = 0;  // pieces
    std::size_t receives_taken = 0;
    std::size_t slots = 0;  // of the window; the piece k arrives in the slot k % slots
    std::size_t slot_bytes = 0;
    std::vector<std::byte> window;
    std::vector<MPI_Request> requests;  // `most_sent` for each destination, then one for each slot
    std::vector<int> complete_ones;     // memory for MPI
    std::exception_ptr failure;         // of `take`
    std::atomic<bool> abandoned = false;
    std::atomic<bool> incomplete = false;
};

PeerTransfers::PeerTransfers(const HostComm& world,
                             std::vector<PeerTransfer> transfers,
                             const Options& options) {
    HETSEQ_ASSERT(options.piece_bytes > 0 && options.most_sent > 0);
    HETSEQ_ASSERT(options.piece_bytes <= std::numeric_limits<int>::max());
    check_alike(world, transfers);
    impl_ = std::make_unique<Impl>(world, std::move(transfers), options);
}

PeerTransfers::~PeerTransfers() {
    if (impl_->incomplete)
        static_cast<void>(impl_.release());
}

void PeerTransfers::take_from(std::size_t transfer, const void* data) {
    impl_->transfers.at(transfer).data = data;
}

bool PeerTransfers::between_ranks() const noexcept {
    return any_crosses(impl_->transfers);
}

// Each look counts as progress: whoever only waits for another rank does not stall.
void PeerTransfers::move(const Take& take) {
    if (impl_->incomplete)
        throw CommError("earlier transfers between ranks are not complete",
                        "see their error above");
    impl_->rewind();
    impl_->incomplete = true;
    Backoff backoff{Backoff::Options{}};
    for (Clock::time_point last_movement = Clock::now(); !impl_->complete();) {
        activity::progress();
        impl_->check_wait(last_movement);
        if (!impl_->advance(take)) {
            backoff.pause();
            continue;
        }
        backoff.reset();
        last_movement = Clock::now();
    }
    impl_->incomplete = false;
    if (impl_->failure)
        std::rethrow_exception(std::exchange(impl_->failure, nullptr));
}

void PeerTransfers::abandon() noexcept {
    impl_->abandoned = true;
}

bool PeerTransfers::incomplete() const noexcept {
    return impl_->incomplete;
}

}  // namespace hetseq
