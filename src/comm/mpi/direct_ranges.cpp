#include "direct_ranges.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include "hetseq/util/error.hpp"
#include "hetseq/comm/mpi/mpi_try.hpp"

#include "messages_in_flight.hpp"
#include "sum_into.hpp"

namespace hetseq {

namespace {

constexpr int scatter_tag = 5;
constexpr int gather_tag = 6;
// To or from each rank. A receiver that is late would otherwise hold what it did not ask for.
constexpr std::size_t messages_a_peer = 8;
// Open MPI asks the receiver of messages of this length before it sends all of them.
constexpr std::size_t least_asked_for = std::size_t{128} << 10;

std::size_t as_size(std::int64_t number) noexcept {
    return static_cast<std::size_t>(number);
}

int rank_of(MPI_Comm comm) {
    int rank = 0;
    MPI_TRY(MPI_Comm_rank(comm, &rank));
    return rank;
}

int size_of(MPI_Comm comm) {
    int size = 1;
    MPI_TRY(MPI_Comm_size(comm, &size));
    return size;
}

// A stretch of bytes that is one message.
struct Piece {
    std::byte* begin = nullptr;
    std::size_t bytes = 0;
};

// The pieces of each rank's ranges.
std::vector<std::vector<Piece>> cut_by_owner(std::byte* values,
                                             std::size_t value_bytes,
                                             std::span<const OwnedRange> ranges,
                                             int ranks,
                                             std::size_t message_bytes) {
    const std::size_t most = std::max<std::size_t>(message_bytes / value_bytes, 1) * value_bytes;
    std::vector<std::vector<Piece>> pieces(as_size(ranks));
    for (const OwnedRange& range : ranges) {
        std::byte* const begin = values + as_size(range.begin) * value_bytes;
        const std::size_t bytes = as_size(range.length) * value_bytes;
        for (std::size_t done = 0; done < bytes; done += most)
            pieces.at(as_size(range.owner)).push_back({begin + done, std::min(most, bytes - done)});
    }
    return pieces;
}

// What goes to one peer, or comes from it, in order, a few pieces at a time.
struct PeerQueue {
    const std::vector<Piece>* pieces = nullptr;
    std::size_t started = 0;
    std::size_t in_flight = 0;

    bool may_start() const noexcept {
        return started < pieces->size() && in_flight < messages_a_peer;
    }
    const Piece& start() {
        ++in_flight;
        return (*pieces)[started++];
    }
};

// Numbers of messages: sends by peer, then receives.
template <class Value>
class Scatter {
public:
    Scatter(MPI_Comm comm,
            Value* values,
            std::size_t count,
            SumOrder order,
            std::span<const OwnedRange> ranges,
            std::size_t message_bytes,
            Scratch& scratch)
        : values_{values},
          count_{count},
          order_{order},
          rank_{rank_of(comm)},
          size_{size_of(comm)},
          pieces_{cut_by_owner(reinterpret_cast<std::byte*>(values),
                               sizeof(Value),
                               ranges,
                               size_,
                               message_length(ranges, message_bytes))},
          messages_{comm},
          sends_(as_size(size_)) {
        for (int peer = 0; peer < size_; ++peer)
            sends_[as_size(peer)].pieces = peer == rank_ ? &none_ : &pieces_[as_size(peer)];
        make_slots(scratch);
        post_receives();
        post_sends();
    }

    bool complete() const noexcept { return messages_.empty(); }

    /// Takes in what has arrived and starts what may start then. True when anything moved.
    bool advance() {
        const std::vector<std::size_t>& complete = messages_.take_complete();
        for (const std::size_t number : complete)
            if (number < as_size(size_))
                --sends_[number].in_flight;
            else
                part_has_come(number - as_size(size_));
        if (complete.empty())
            return false;
        post_receives();
        post_sends();
        return true;
    }

private:
    // Where the parts of one own piece arrive.
    struct Slot {
        std::byte* parts = nullptr;
        std::size_t piece = 0;
        std::size_t missing = 0;
    };

    // Longer ones where the parts do not fit the window all at once.
    std::size_t message_length(std::span<const OwnedRange> ranges, std::size_t wanted) const {
        std::vector<std::size_t> owned(as_size(size_), 0);
        for (const OwnedRange& range : ranges)
            owned.at(as_size(range.owner)) += as_size(range.length) * sizeof(Value);
        const std::size_t most = *std::max_element(owned.begin(), owned.end());
        return most * as_size(size_ - 1) <= scatter_window_bytes
                   ? wanted
                   : std::max(wanted, least_asked_for);
    }

    const std::vector<Piece>& own() const { return pieces_[as_size(rank_)]; }

    void make_slots(Scratch& scratch) {
        std::size_t longest = 0;
        for (const Piece& piece : own())
            longest = std::max(longest, piece.bytes);
        const std::size_t of_slot = longest * as_size(size_ - 1);
        if (of_slot == 0)
            return;
        const std::size_t fitting = std::max<std::size_t>(scatter_window_bytes / of_slot, 1);
        slots_.resize(std::min(fitting, own().size()));
        scratch.resize(std::max(scratch.size(), slots_.size() * of_slot));
        for (std::size_t i = 0; i < slots_.size(); ++i)
            slots_[i].parts = scratch.data() + i * of_slot;
    }

    Piece part(const Slot& slot, int peer) const {
        const std::size_t bytes = own()[slot.piece].bytes;
        return {slot.parts + as_size(peer < rank_ ? peer : peer - 1) * bytes, bytes};
    }

    // In the order of pieces, since the messages of a peer come in it.
    void post_receives() {
        for (; next_piece_ < own().size(); ++next_piece_) {
            const std::size_t index = next_piece_ % slots_.size();
            Slot& slot = slots_[index];
            if (slot.missing > 0)
                return;
            slot.piece = next_piece_;
            slot.missing = as_size(size_ - 1);
            for (int peer = 0; peer < size_; ++peer)
                if (peer != rank_) {
                    const Piece target = part(slot, peer);
                    messages_.receive(
                        target.begin, target.bytes, peer, scatter_tag, as_size(size_) + index);
                }
        }
    }

    // Starting with the next rank, so that not all send to the same.
    void post_sends() {
        for (int distance = 1; distance < size_; ++distance) {
            const int peer = (rank_ + distance) % size_;
            PeerQueue& queue = sends_[as_size(peer)];
            while (queue.may_start()) {
                const Piece& piece = queue.start();
                messages_.send(piece.begin, piece.bytes, peer, scatter_tag, as_size(peer));
            }
        }
    }

    void part_has_come(std::size_t index) {
        Slot& slot = slots_[index];
        if (--slot.missing > 0)
            return;
        add_parts(slot);
    }

    void add_parts(const Slot& slot) const {
        const Piece& piece = own()[slot.piece];
        auto* const target = reinterpret_cast<Value*>(piece.begin);
        const auto first = as_size(target - values_);
        const std::size_t length = piece.bytes / sizeof(Value);
        for (std::size_t done = 0; done < length;) {
            const int begins = first_rank_of(first + done);
            const std::size_t end =
                order_ == SumOrder::of_ranks
                    ? length
                    : std::min(length, count_ * as_size(begins + 1) / as_size(size_) - first);
            std::vector<const Value*> parts;
            for (int i = 0; i < size_; ++i) {
                const int peer = (begins + i) % size_;
                const std::byte* const from = peer == rank_ ? piece.begin : part(slot, peer).begin;
                parts.push_back(reinterpret_cast<const Value*>(from) + done);
            }
            sum_in_order<Value>(target + done, parts, end - done);
            done = end;
        }
    }

    // The rank whose value comes first: the number of the element's chunk around the ring.
    int first_rank_of(std::size_t element) const {
        if (order_ == SumOrder::of_ranks)
            return 0;
        auto chunk = element * as_size(size_) / count_;
        while (count_ * (chunk + 1) / as_size(size_) <= element)
            ++chunk;
        return static_cast<int>(chunk);
    }

    Value* values_;
    std::size_t count_;
    SumOrder order_;
    int rank_;
    int size_;
    std::vector<std::vector<Piece>> pieces_;  // by owner
    const std::vector<Piece> none_;
    MessagesInFlight<std::size_t> messages_;  // their numbers
    std::vector<PeerQueue> sends_;            // by peer
    std::vector<Slot> slots_;
    std::size_t next_piece_ = 0;  // the first own one whose parts were not asked for
};

// Numbers of messages: sends by peer, then receives by peer.
class Gather {
public:
    Gather(MPI_Comm comm,
           std::byte* values,
           std::size_t value_bytes,
           std::span<const OwnedRange> ranges,
           std::size_t message_bytes)
        : rank_{rank_of(comm)},
          size_{size_of(comm)},
          pieces_{cut_by_owner(values, value_bytes, ranges, size_, message_bytes)},
          messages_{comm},
          queues_(2 * as_size(size_)) {
        for (int peer = 0; peer < size_; ++peer) {
            sends(peer).pieces = peer == rank_ ? &none_ : &pieces_[as_size(rank_)];
            receives(peer).pieces = peer == rank_ ? &none_ : &pieces_[as_size(peer)];
        }
        start_more();
    }

    bool complete() const noexcept { return messages_.empty(); }

    bool advance() {
        const std::vector<std::size_t>& complete = messages_.take_complete();
        for (const std::size_t number : complete)
            --queues_[number].in_flight;
        if (complete.empty())
            return false;
        start_more();
        return true;
    }

private:
    PeerQueue& sends(int peer) { return queues_[as_size(peer)]; }
    PeerQueue& receives(int peer) { return queues_[as_size(size_ + peer)]; }

    void start_more() {
        for (int distance = 1; distance < size_; ++distance) {
            const int from = (rank_ + size_ - distance) % size_;
            while (receives(from).may_start()) {
                const Piece& piece = receives(from).start();
                messages_.receive(
                    piece.begin, piece.bytes, from, gather_tag, as_size(size_ + from));
            }
            const int to = (rank_ + distance) % size_;
            while (sends(to).may_start()) {
                const Piece& piece = sends(to).start();
                messages_.send(piece.begin, piece.bytes, to, gather_tag, as_size(to));
            }
        }
    }

    int rank_;
    int size_;
    std::vector<std::vector<Piece>> pieces_;  // by owner
    const std::vector<Piece> none_;
    MessagesInFlight<std::size_t> messages_;  // their numbers
    std::vector<PeerQueue> queues_;
};

}  // namespace

template <class Value>
void direct_reduce_scatter(MPI_Comm comm,
                           Value* values,
                           std::size_t count,
                           SumOrder order,
                           std::span<const OwnedRange> ranges,
                           std::size_t message_bytes,
                           Scratch& scratch,
                           Progress& progress) {
    if (size_of(comm) == 1)
        return;
    Scatter<Value> scatter{comm, values, count, order, ranges, message_bytes, scratch};
    complete(scatter, progress);
}

void direct_all_gather(MPI_Comm comm,
                       std::byte* values,
                       std::size_t value_bytes,
                       std::span<const OwnedRange> ranges,
                       std::size_t message_bytes,
                       Progress& progress) {
    if (size_of(comm) == 1)
        return;
    Gather gather{comm, values, value_bytes, ranges, message_bytes};
    complete(gather, progress);
}

template void direct_reduce_scatter(MPI_Comm,
                                    float*,
                                    std::size_t,
                                    SumOrder,
                                    std::span<const OwnedRange>,
                                    std::size_t,
                                    Scratch&,
                                    Progress&);
template void direct_reduce_scatter(MPI_Comm,
                                    double*,
                                    std::size_t,
                                    SumOrder,
                                    std::span<const OwnedRange>,
                                    std::size_t,
                                    Scratch&,
                                    Progress&);
template void direct_reduce_scatter(MPI_Comm,
                                    c10::BFloat16*,
                                    std::size_t,
                                    SumOrder,
                                    std::span<const OwnedRange>,
                                    std::size_t,
                                    Scratch&,
                                    Progress&);
template void direct_reduce_scatter(MPI_Comm,
                                    c10::Half*,
                                    std::size_t,
                                    SumOrder,
                                    std::span<const OwnedRange>,
                                    std::size_t,
                                    Scratch&,
                                    Progress&);

}  // namespace hetseq
