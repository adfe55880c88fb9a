#include "roll_call.hpp"

#include <vector>

#include "hetseq/comm/host/rank_ranges.hpp"
#include "hetseq/comm/mpi/mpi_try.hpp"

#include "backoff.hpp"
#include "sleeping_wait.hpp"

namespace hetseq {

namespace {

constexpr int here_tag = 11;
constexpr int all_here_tag = 12;

}  // namespace

RollCall::RollCall(MPI_Comm comm) : comm_{comm} {
    MPI_TRY(MPI_Comm_rank(comm, &rank_));
    MPI_TRY(MPI_Comm_size(comm, &size_));
    here_ = std::make_unique<std::atomic<bool>[]>(static_cast<std::size_t>(size_));
    here_[0] = true;
}

void RollCall::meet() {
    waits_ = true;
    if (rank_ == 0)
        hear_all();
    else
        ask_rank_zero();
    waits_ = false;
}

void RollCall::hear_all() {
    std::vector<MPI_Request> requests(static_cast<std::size_t>(size_ - 1), MPI_REQUEST_NULL);
    std::vector<int> indices(requests.size());
    for (int rank = 1; rank < size_; ++rank)
        MPI_TRY(MPI_Irecv(nullptr,
                          0,
                          MPI_BYTE,
                          rank,
                          here_tag,
                          comm_,
                          &requests[static_cast<std::size_t>(rank - 1)]));
    Backoff backoff{Backoff::Options{}};
    for (int count = 0; count != MPI_UNDEFINED;) {
        MPI_TRY(
            MPI_Testsome(size_ - 1, requests.data(), &count, indices.data(), MPI_STATUSES_IGNORE));
        for (int i = 0; i < count; ++i)
            here_[static_cast<std::size_t>(indices[static_cast<std::size_t>(i)] + 1)] = true;
        if (count == 0)
            backoff.pause();
    }
    for (int rank = 1; rank < size_; ++rank)
        run_sleeping([&](MPI_Request* request) {
            MPI_TRY(MPI_Isend(nullptr, 0, MPI_BYTE, rank, all_here_tag, comm_, request));
        });
}

void RollCall::ask_rank_zero() {
    run_sleeping([&](MPI_Request* request) {
        MPI_TRY(MPI_Isend(nullptr, 0, MPI_BYTE, 0, here_tag, comm_, request));
    });
    run_sleeping([&](MPI_Request* request) {
        MPI_TRY(MPI_Irecv(nullptr, 0, MPI_BYTE, 0, all_here_tag, comm_, request));
    });
}

std::string RollCall::missing() const {
    if (!waits_)
        return "";
    if (rank_ != 0)
        return "rank 0, which would name those that are missing, has not answered";
    std::vector<int> ranks;
    for (int rank = 0; rank < size_; ++rank)
        if (!here_[static_cast<std::size_t>(rank)])
            ranks.push_back(rank);
    return ranks.empty()
               ? ""
               : name_ranks(ranks) + (ranks.size() == 1 ? " has not" : " have not") + " come";
}

}  // namespace hetseq
