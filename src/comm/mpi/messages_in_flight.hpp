#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include <mpi.h>

#include "hetseq/comm/mpi/mpi_try.hpp"

namespace hetseq {

/// Messages of one communicator that are under way, each with a label that says what it is.
template <class Label>
class MessagesInFlight {
public:
    explicit MessagesInFlight(MPI_Comm comm) : comm_{comm} {}

    void send(const std::byte* begin, std::size_t bytes, int peer, int tag, Label label) {
        const int count = static_cast<int>(bytes);
        MPI_TRY(MPI_Isend(begin, count, MPI_BYTE, peer, tag, comm_, &added(std::move(label))));
    }
    /// Complete when the receiver has begun to receive it.
    void send_synchronously(
        const std::byte* begin, std::size_t bytes, int peer, int tag, Label label) {
        const int count = static_cast<int>(bytes);
        MPI_TRY(MPI_Issend(begin, count, MPI_BYTE, peer, tag, comm_, &added(std::move(label))));
    }
    void receive(std::byte* begin, std::size_t bytes, int peer, int tag, Label label) {
        const int count = static_cast<int>(bytes);
        MPI_TRY(MPI_Irecv(begin, count, MPI_BYTE, peer, tag, comm_, &added(std::move(label))));
    }
    bool empty() const noexcept { return requests_.empty(); }

    /// The labels of those that have arrived or left since. The reference lasts until the next
    /// call.
    const std::vector<Label>& take_complete() {
        complete_.clear();
        if (requests_.empty())
            return complete_;
        int count = 0;
        indices_.resize(requests_.size());
        // One call for all: each makes MPI look at its network.
        MPI_TRY(MPI_Testsome(static_cast<int>(requests_.size()),
                             requests_.data(),
                             &count,
                             indices_.data(),
                             MPI_STATUSES_IGNORE));
        for (int i = 0; i < count; ++i)
            complete_.push_back(
                labels_[static_cast<std::size_t>(indices_[static_cast<std::size_t>(i)])]);
        drop_complete();
        return complete_;
    }

    /// Ends receives that nothing has come for.
    void cancel() {
        for (MPI_Request& request : requests_) {
            MPI_TRY(MPI_Cancel(&request));
            MPI_TRY(MPI_Wait(&request, MPI_STATUS_IGNORE));
        }
        drop_complete();
    }

private:
    MPI_Request& added(Label label) {
        labels_.push_back(std::move(label));
        return requests_.emplace_back(MPI_REQUEST_NULL);
    }

    void drop_complete() {
        std::size_t kept = 0;
        for (std::size_t i = 0; i < requests_.size(); ++i)
            if (requests_[i] != MPI_REQUEST_NULL) {
                requests_[kept] = requests_[i];
                labels_[kept++] = labels_[i];
            }
        requests_.resize(kept);
        labels_.resize(kept);
    }

    MPI_Comm comm_;
    std::vector<MPI_Request> requests_;
    std::vector<Label> labels_;  // of `requests_`
    std::vector<int> indices_;   // of those complete
    std::vector<Label> complete_;
};

}  // namespace hetseq
