#include "mpi_collectives.hpp"

#include <algorithm>
#include <string>

#include <ATen/Dispatch.h>

#include "hetseq/util/activity.hpp"
#include "hetseq/util/error.hpp"
#include "hetseq/util/fault_point.hpp"
#include "hetseq/comm/mpi/mpi_handle.hpp"
#include "hetseq/comm/mpi/mpi_try.hpp"

namespace hetseq {

namespace {

// How a tensor is summed depends on its size and the number of ranks alone, so that a run that is
// continued on as many ranks has the same bits.
constexpr std::size_t largest_doubled = std::size_t{32} << 10;  // bytes: one exchange of everything
constexpr std::size_t largest_direct = std::size_t{16} << 20;   // bytes: as much memory once more
constexpr int most_direct_ranks = 64;                           // each of which talks to all others

// Between hosts just short of 64 KiB, above which Open MPI's TCP asks the receiver before it sends:
// between hosts of 1.0 and 0.25 cores 4.8 MB took 1.9 ms of the slower one's time in such messages,
// 3.2 in those of 128 KiB. Bits do not depend on it.
constexpr std::size_t message_bytes_on_one_host = std::size_t{128} << 10;
constexpr std::size_t message_bytes_between_hosts = std::size_t{60} << 10;

void check(const at::Tensor& tensor) {
    HETSEQ_ASSERT(tensor.device().is_cpu() && tensor.is_contiguous());
}

std::string name_others(const HostComm& comm, const std::vector<int>& job_ranks) {
    if (comm.size() != 2)
        return "the other ranks";
    const int other = 1 - comm.rank();
    return "rank " +
           std::to_string(job_ranks.empty() ? other : job_ranks[static_cast<std::size_t>(other)]);
}

}  // namespace

MpiCollectives::MpiCollectives(const HostComm& world,
                               std::chrono::seconds deadline,
                               const std::vector<int>& job_ranks)
    : comm_{world.duplicate()},
      message_bytes_{world.split_by_host().size() == world.size() ? message_bytes_on_one_host
                                                                  : message_bytes_between_hosts},
      deadline_{deadline},
      others_{name_others(comm_, job_ranks)} {}

void MpiCollectives::all_reduce_sum(const at::Tensor& tensor) {
    check(tensor);
    guarded(tensor, [&](Progress& progress) { sum(tensor, progress); });
}

void MpiCollectives::broadcast(const at::Tensor& tensor, int root) {
    check(tensor);
    guarded(tensor, [&](Progress& progress) { send_all(tensor, root, progress); });
}

void MpiCollectives::guarded(const at::Tensor& tensor,
                             const std::function<void(Progress&)>& collective) {
    const activity::Waiting waiting;  // where this is the job's thread
    Progress progress{deadline_, abandoned_, others_};
    try {
        fault_point("reduce_thread", activity::now().update);
        collective(progress);
    } catch (...) {
        static_cast<void>(new at::Tensor(tensor));
        static_cast<void>(scratch_.release());
        throw;
    }
}

void MpiCollectives::sum(const at::Tensor& tensor, Progress& progress) {
    AT_DISPATCH_FLOATING_TYPES_AND2(
        at::kBFloat16, at::kHalf, tensor.scalar_type(), "all_reduce_sum", [&] {
            auto* values = tensor.mutable_data_ptr<scalar_t>();
            const auto count = static_cast<std::size_t>(tensor.numel());
            const MPI_Comm comm = mpi_handle(comm_);
            if (tensor.nbytes() <= largest_doubled)
                doubling_all_reduce(comm, values, count, *scratch_, progress);
            else if (tensor.nbytes() <= largest_direct && size() <= most_direct_ranks)
                direct_all_reduce(comm, values, count, message_bytes_, *scratch_, progress);
            else
                ring_all_reduce(comm, values, count, message_bytes_, *scratch_, progress);
        });
}

void MpiCollectives::send_all(const at::Tensor& tensor, int root, Progress& progress) {
    constexpr std::size_t piece_bytes = std::size_t{1} << 30;  // MPI counts in int
    auto* bytes = static_cast<std::byte*>(tensor.mutable_data_ptr());
    for (std::size_t begin = 0; begin < tensor.nbytes(); begin += piece_bytes) {
        const auto length = static_cast<int>(std::min(piece_bytes, tensor.nbytes() - begin));
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_TRY(MPI_Ibcast(bytes + begin, length, MPI_BYTE, root, mpi_handle(comm_), &request));
        for (int complete = 0; complete == 0;) {
            MPI_TRY(MPI_Test(&request, &complete, MPI_STATUS_IGNORE));
            if (complete == 0)
                progress.nothing_moved();
        }
    }
}

}  // namespace hetseq
