#include <algorithm>
#include <array>

#include "hetseq/comm/mpi/mpi_try.hpp"

#include "all_reduce.hpp"
#include "sum_into.hpp"

namespace hetseq {

namespace {

constexpr int in_flight = 8;  // segments each way: what is received fits a core's own cache
constexpr int ring_tag = 1;

// The ring as one sequence of transfers, the same on all ranks. With n ranks there are 2 (n - 1)
// steps of one chunk (1/n of the values) each, cut into `segments`; transfer i is segment
// i % segments of step i / segments. In step s rank r sends chunk r - s and receives chunk
// r - s - 1 (mod n), adding it in the first n - 1 steps and storing it in the others. What is
// received in transfer i is sent on in transfer i + segments.
template <class Value>
class Ring {
public:
    Ring(MPI_Comm comm,
         Value* values,
         std::size_t count,
         std::size_t message_bytes,
         Scratch& scratch)
        : comm_{comm},
          values_{values},
          count_{count},
          segment_length_{message_bytes / sizeof(Value)} {
        MPI_TRY(MPI_Comm_rank(comm, &rank_));
        MPI_TRY(MPI_Comm_size(comm, &size_));
        const std::size_t longest_chunk = (count + as_size(size_) - 1) / as_size(size_);
        segments_ = static_cast<int>((longest_chunk + segment_length_ - 1) / segment_length_);
        transfers_ = 2 * (size_ - 1) * segments_;
        scratch.resize(std::max(scratch.size(), in_flight * message_bytes));
        scratch_ = reinterpret_cast<Value*>(scratch.data());
        sends_.fill(MPI_REQUEST_NULL);
        receives_.fill(MPI_REQUEST_NULL);
    }

    bool complete() const noexcept { return received_ == transfers_ && sent_ == transfers_; }

    /// Starts what may start and takes in what has arrived. True when anything moved.
    bool advance() {
        bool moved = post_receives();
        moved |= take_received();
        moved |= post_sends();
        moved |= finish_sends();
        return moved;
    }

private:
    static std::size_t as_size(int number) noexcept { return static_cast<std::size_t>(number); }

    struct Piece {
        Value* begin;
        std::size_t length;
        int bytes() const noexcept { return static_cast<int>(length * sizeof(Value)); }
    };

    // Segment `segment` of chunk `chunk` (mod n); empty at the end of a short chunk.
    Piece piece(int chunk, int segment) const noexcept {
        const std::size_t c = as_size(((chunk % size_) + size_) % size_);
        const std::size_t chunk_begin = count_ * c / as_size(size_);
        const std::size_t chunk_end = count_ * (c + 1) / as_size(size_);
        const std::size_t begin =
            std::min(chunk_begin + as_size(segment) * segment_length_, chunk_end);
        const std::size_t end = std::min(begin + segment_length_, chunk_end);
        return {values_ + begin, end - begin};
    }
    Piece sent_piece(int i) const noexcept { return piece(rank_ - i / segments_, i % segments_); }
    Piece received_piece(int i) const noexcept {
        return piece(rank_ - i / segments_ - 1, i % segments_);
    }

    bool adds(int i) const noexcept { return i < (size_ - 1) * segments_; }
    static std::size_t slot(int i) noexcept { return as_size(i % in_flight); }
    Value* buffer(int i) const noexcept { return scratch_ + slot(i) * segment_length_; }

    // Received values replace those that an earlier transfer sent. That transfer must be over.
    bool may_receive(int i) const noexcept {
        return adds(i) || sent_ > i - (size_ - 1) * segments_;
    }

    bool post_receives() {
        const int before = receives_posted_;
        for (int& i = receives_posted_;
             i < transfers_ && i < received_ + in_flight && may_receive(i);
             ++i) {
            const Piece target = received_piece(i);
            MPI_TRY(MPI_Irecv(adds(i) ? buffer(i) : target.begin,
                              target.bytes(),
                              MPI_BYTE,
                              (rank_ + size_ - 1) % size_,
                              ring_tag,
                              comm_,
                              &receives_[slot(i)]));
        }
        return receives_posted_ != before;
    }

    // In order, since MPI delivers the messages of a pair in order.
    bool take_received() {
        if (received_ == receives_posted_)
            return false;
        int arrived = 0;
        MPI_TRY(MPI_Test(&receives_[slot(received_)], &arrived, MPI_STATUS_IGNORE));
        if (arrived == 0)
            return false;
        if (adds(received_)) {
            const Piece target = received_piece(received_);
            sum_into(target.begin, buffer(received_), target.length);
        }
        ++received_;
        return true;
    }

    bool post_sends() {
        const int before = sends_posted_;
        for (int& i = sends_posted_;
             i < transfers_ && i < sent_ + in_flight && i < received_ + segments_;
             ++i) {
            const Piece source = sent_piece(i);
            MPI_TRY(MPI_Isend(source.begin,
                              source.bytes(),
                              MPI_BYTE,
                              (rank_ + 1) % size_,
                              ring_tag,
                              comm_,
                              &sends_[slot(i)]));
        }
        return sends_posted_ != before;
    }

    bool finish_sends() {
        if (sent_ == sends_posted_)
            return false;
        int gone = 0;
        MPI_TRY(MPI_Test(&sends_[slot(sent_)], &gone, MPI_STATUS_IGNORE));
        sent_ += gone != 0 ? 1 : 0;
        return gone != 0;
    }

    MPI_Comm comm_;
    Value* values_;
    std::size_t count_;
    std::size_t segment_length_;  // elements
    Value* scratch_ = nullptr;
    int rank_ = 0;
    int size_ = 1;
    int segments_ = 0;
    int transfers_ = 0;
    int receives_posted_ = 0;
    int received_ = 0;
    int sends_posted_ = 0;
    int sent_ = 0;
    std::array<MPI_Request, in_flight> receives_;
    std::array<MPI_Request, in_flight> sends_;
};

}  // namespace

template <class Value>
void ring_all_reduce(MPI_Comm comm,
                     Value* values,
                     std::size_t count,
                     std::size_t message_bytes,
                     Scratch& scratch,
                     Progress& progress) {
    Ring<Value> ring{comm, values, count, message_bytes, scratch};
    complete(ring, progress);
}

template void ring_all_reduce(MPI_Comm, float*, std::size_t, std::size_t, Scratch&, Progress&);
template void ring_all_reduce(MPI_Comm, double*, std::size_t, std::size_t, Scratch&, Progress&);

}  // namespace hetseq
