#include <algorithm>
#include <array>
#include <vector>

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include "hetseq/comm/mpi/mpi_try.hpp"

#include "all_reduce.hpp"
#include "sum_into.hpp"

namespace hetseq {

namespace {

constexpr int part_tag = 3;
constexpr int sum_tag = 4;

// Transfers of one kind, in the order in which they are started and looked at.
class TransferQueue {
public:
    void send(const void* begin, std::size_t bytes, int peer, int tag, MPI_Comm comm) {
        MPI_TRY(MPI_Isend(begin, static_cast<int>(bytes), MPI_BYTE, peer, tag, comm, &added()));
    }
    void receive(void* begin, std::size_t bytes, int peer, int tag, MPI_Comm comm) {
        MPI_TRY(MPI_Irecv(begin, static_cast<int>(bytes), MPI_BYTE, peer, tag, comm, &added()));
    }
    /// The first that is not complete; null where there is none.
    MPI_Request next() const noexcept {
        return complete_ < requests_.size() ? requests_[complete_] : MPI_REQUEST_NULL;
    }
    void next_is_complete() noexcept { ++complete_; }
    std::size_t started() const noexcept { return requests_.size(); }
    std::size_t complete() const noexcept { return complete_; }

private:
    MPI_Request& added() { return requests_.emplace_back(MPI_REQUEST_NULL); }

    std::vector<MPI_Request> requests_;
    std::size_t complete_ = 0;
};

template <class Value>
class Direct {
public:
    Direct(MPI_Comm comm,
           Value* values,
           std::size_t count,
           std::size_t message_bytes,
           Scratch& scratch)
        : comm_{comm},
          values_{values},
          count_{count},
          piece_length_{message_bytes / sizeof(Value)} {
        MPI_TRY(MPI_Comm_rank(comm, &rank_));
        MPI_TRY(MPI_Comm_size(comm, &size_));
        own_ = share(rank_);
        const std::size_t others = as_size(size_ - 1);
        scratch.resize(std::max(scratch.size(), others * own_.length * sizeof(Value)));
        scratch_ = reinterpret_cast<Value*>(scratch.data());
        list_theirs();
        receive_parts();
        send_parts();
    }

    bool complete() const noexcept {
        return sums_received_.complete() == theirs_.size() && next_sum_ == pieces(own_) &&
               sums_sent_.complete() == sums_sent_.started();
    }

    /// Takes in what has arrived and starts what may start then. True when anything moved.
    bool advance() {
        const std::array queues{&sums_received_, &parts_received_, &parts_sent_, &sums_sent_};
        std::array<MPI_Request, queues.size()> next;
        std::transform(queues.begin(), queues.end(), next.begin(), [](const TransferQueue* queue) {
            return queue->next();
        });
        int index = MPI_UNDEFINED;
        int flag = 0;
        // One call for all: each makes MPI look at its network.
        MPI_TRY(MPI_Testany(queues.size(), next.data(), &index, &flag, MPI_STATUS_IGNORE));
        if (index == MPI_UNDEFINED)
            return false;
        queues[as_size(index)]->next_is_complete();
        receive_sums();
        send_sums();
        return true;
    }

private:
    struct Range {
        Value* begin = nullptr;
        std::size_t length = 0;
        std::size_t bytes() const noexcept { return length * sizeof(Value); }
    };
    struct PeerRange {
        int peer;
        Range range;
    };

    static std::size_t as_size(int number) noexcept { return static_cast<std::size_t>(number); }

    // What `rank` sums.
    Range share(int rank) const noexcept {
        const std::size_t begin = count_ * as_size(rank) / as_size(size_);
        const std::size_t end = count_ * as_size(rank + 1) / as_size(size_);
        return {values_ + begin, end - begin};
    }
    std::size_t pieces(const Range& range) const noexcept {
        return (range.length + piece_length_ - 1) / piece_length_;
    }
    Range piece(const Range& range, std::size_t index) const noexcept {
        const std::size_t begin = index * piece_length_;
        return {range.begin + begin, std::min(piece_length_, range.length - begin)};
    }
    // Where `peer`'s part of this rank's share arrives.
    Range part(int peer) const noexcept {
        return {scratch_ + as_size(peer < rank_ ? peer : peer - 1) * own_.length, own_.length};
    }

    // The pieces of the other ranks' shares: first pieces first, each rank starting with the next
    // one, so that not all send to the same.
    void list_theirs() {
        const std::size_t longest = (count_ + as_size(size_) - 1) / as_size(size_);
        for (std::size_t k = 0; k < pieces({values_, longest}); ++k)
            for (int distance = 1; distance < size_; ++distance) {
                const int peer = (rank_ + distance) % size_;
                if (const Range theirs = share(peer); k < pieces(theirs))
                    theirs_.push_back({peer, piece(theirs, k)});
            }
    }

    void receive_parts() {
        for (std::size_t k = 0; k < pieces(own_); ++k)
            for (int peer = 0; peer < size_; ++peer)
                if (peer != rank_) {
                    const Range target = piece(part(peer), k);
                    parts_received_.receive(target.begin, target.bytes(), peer, part_tag, comm_);
                }
    }

    void send_parts() {
        for (const auto& [peer, range] : theirs_)
            parts_sent_.send(range.begin, range.bytes(), peer, part_tag, comm_);
    }

    // A sum replaces the part that this rank sent of it, which must have left.
    void receive_sums() {
        while (sums_received_.started() < parts_sent_.complete()) {
            const auto& [peer, range] = theirs_[sums_received_.started()];
            sums_received_.receive(range.begin, range.bytes(), peer, sum_tag, comm_);
        }
    }

    void send_sums() {
        for (; next_sum_ < parts_received_.complete() / as_size(size_ - 1); ++next_sum_) {
            const Range sum = piece(own_, next_sum_);
            add_parts(sum);
            for (int distance = 1; distance < size_; ++distance)
                sums_sent_.send(sum.begin, sum.bytes(), (rank_ + distance) % size_, sum_tag, comm_);
        }
    }

    // In the order of ranks.
    void add_parts(const Range& own) const {
        std::vector<const Value*> parts;
        for (int peer = 0; peer < size_; ++peer)
            parts.push_back(peer == rank_ ? own.begin : piece(part(peer), next_sum_).begin);
        sum_in_order<Value>(own.begin, parts, own.length);
    }

    MPI_Comm comm_;
    Value* values_;
    std::size_t count_;
    std::size_t piece_length_;  // elements
    int rank_ = 0;
    int size_ = 1;
    Range own_;
    Value* scratch_ = nullptr;
    std::vector<PeerRange> theirs_;
    TransferQueue parts_received_;  // of own pieces, piece by piece
    TransferQueue parts_sent_;      // of `theirs_`, as the sums received
    TransferQueue sums_received_;
    TransferQueue sums_sent_;
    std::size_t next_sum_ = 0;  // the first piece of the own share not yet summed
};

}  // namespace

template <class Value>
void direct_all_reduce(MPI_Comm comm,
                       Value* values,
                       std::size_t count,
                       std::size_t message_bytes,
                       Scratch& scratch,
                       Progress& progress) {
    int size = 1;
    MPI_TRY(MPI_Comm_size(comm, &size));
    if (count == 0 || size == 1)
        return;
    Direct<Value> direct{comm, values, count, message_bytes, scratch};
    complete(direct, progress);
}

template void direct_all_reduce(MPI_Comm, float*, std::size_t, std::size_t, Scratch&, Progress&);
template void direct_all_reduce(MPI_Comm, double*, std::size_t, std::size_t, Scratch&, Progress&);
template void direct_all_reduce(
    MPI_Comm, c10::BFloat16*, std::size_t, std::size_t, Scratch&, Progress&);
template void direct_all_reduce(
    MPI_Comm, c10::Half*, std::size_t, std::size_t, Scratch&, Progress&);

}  // namespace hetseq
