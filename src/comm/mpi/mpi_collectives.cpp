#include "mpi_collectives.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include <ATen/Dispatch.h>

#include "hetseq/util/all_reduce_scheme.hpp"
#include "hetseq/util/error.hpp"
#include "hetseq/util/process/activity.hpp"
#include "hetseq/util/process/fault_point.hpp"
#include "hetseq/comm/mpi/mpi_handle.hpp"
#include "hetseq/comm/mpi/mpi_try.hpp"

#include "direct_ranges.hpp"
#include "sum_into.hpp"

namespace hetseq {

namespace {

// Between hosts just short of 64 KiB, above which Open MPI's TCP asks the receiver before it sends:
// between hosts of 1.0 and 0.25 cores 4.8 MB took 1.9 ms of the slower one's time in such messages,
// 3.2 in those of 128 KiB. Bits do not depend on it.
constexpr std::size_t message_bytes_on_one_host = std::size_t{128} << 10;
constexpr std::size_t message_bytes_between_hosts = std::size_t{60} << 10;

// Long enough that the latencies of its levels are small beside its transfers: at 10 Gbit/s 7 ms
// between hosts, against 14 latencies of 0.05 ms among 128 hosts.
constexpr std::size_t hierarchical_piece_bytes = std::size_t{4} << 20;

void check(const at::Tensor& tensor) {
    HETSEQ_ASSERT(tensor.device().is_cpu() && tensor.is_contiguous());
}

// Collective. The lowest rank of its host, for each rank.
HostMap map_hosts(const HostComm& world) {
    const HostComm host = world.split_by_host();
    const std::int64_t lowest = host.broadcast(std::int64_t{world.rank()}, 0);
    std::vector<int> host_of_rank;
    for (const std::int64_t rank : world.all_gather(lowest))
        host_of_rank.push_back(static_cast<int>(rank));
    return HostMap{host_of_rank};
}

std::string name_others(const HostComm& comm, const std::vector<int>& job_ranks) {
    if (comm.size() != 2)
        return "the other ranks";
    const int other = 1 - comm.rank();
    return "rank " +
           std::to_string(job_ranks.empty() ? other : job_ranks[static_cast<std::size_t>(other)]);
}

// Their time is latency, in fp32 too, and they are rounded once then.
bool is_few_of_16_bits(const at::Tensor& tensor, int ranks) {
    return tensor.element_size() == 2 &&
           all_reduce_scheme(tensor.nbytes(), ranks) == AllReduceScheme::doubling;
}

// Values of 16 bits are rounded once: around the ring they would be at each rank.
template <class Value>
void long_all_reduce(MPI_Comm comm,
                     Value* values,
                     std::size_t count,
                     std::size_t message_bytes,
                     Scratch& scratch,
                     Progress& progress) {
    if constexpr (sizeof(Value) == 2) {
        const std::size_t most = largest_direct_bytes / sizeof(Value);
        for (std::size_t begin = 0; begin < count; begin += most)
            direct_all_reduce(comm,
                              values + begin,
                              std::min(most, count - begin),
                              message_bytes,
                              scratch,
                              progress);
    } else {
        ring_all_reduce(comm, values, count, message_bytes, scratch, progress);
    }
}

bool is_hierarchical(const at::Tensor& tensor, int ranks) {
    return all_reduce_scheme(tensor.nbytes(), ranks) == AllReduceScheme::hierarchical;
}

// That of an all-reduce. Values of 16 bits do not go around a ring.
SumOrder order_of(const at::Tensor& tensor, int ranks) {
    const bool is_ring = all_reduce_scheme(tensor.nbytes(), ranks) == AllReduceScheme::ring;
    return is_ring && tensor.element_size() > 2 ? SumOrder::around_the_ring : SumOrder::of_ranks;
}

// By rank, as hierarchical collectives take them; none where a rank has several.
std::optional<std::vector<ElementRange>> ranges_by_rank(const std::vector<OwnedRange>& ranges,
                                                        int ranks) {
    std::vector<ElementRange> by_rank(static_cast<std::size_t>(ranks));
    for (const OwnedRange& range : ranges) {
        ElementRange& own = by_rank.at(static_cast<std::size_t>(range.owner));
        if (own.length > 0)
            return std::nullopt;
        own = {static_cast<std::size_t>(range.begin), static_cast<std::size_t>(range.length)};
    }
    return by_rank;
}

template <class Value>
Values values_of(Value* values, std::size_t count) {
    return {reinterpret_cast<std::byte*>(values),
            count,
            sizeof(Value),
            [](std::byte* target, std::span<const std::byte* const> parts, std::size_t length) {
                std::vector<const Value*> typed;
                for (const std::byte* part : parts)
                    typed.push_back(reinterpret_cast<const Value*>(part));
                sum_in_order<Value>(reinterpret_cast<Value*>(target), typed, length);
            }};
}

}  // namespace

MpiCollectives::MpiCollectives(const HostComm& world,
                               std::chrono::seconds deadline,
                               const std::vector<int>& job_ranks)
    : comm_{world.duplicate()},
      hosts_{map_hosts(world)},
      message_bytes_{hosts_.hosts() == 1 ? message_bytes_on_one_host : message_bytes_between_hosts},
      deadline_{deadline},
      others_{name_others(comm_, job_ranks)} {}

void MpiCollectives::all_reduce_sum(const at::Tensor& tensor) {
    check(tensor);
    if (is_few_of_16_bits(tensor, size())) {
        const at::Tensor wide = tensor.to(at::kFloat);
        all_reduce_sum(wide);
        tensor.copy_(wide);
        return;
    }
    guarded("reduce_thread", tensor, [&](Progress& progress) { sum(tensor, progress); });
}

// What is so small is exchanged as a whole: that is fastest, and has an all-reduce's bits.
void MpiCollectives::reduce_scatter_sum(const at::Tensor& tensor,
                                        const std::vector<OwnedRange>& ranges) {
    check(tensor);
    if (all_reduce_scheme(tensor.nbytes(), size()) == AllReduceScheme::doubling)
        return all_reduce_sum(tensor);
    guarded("reduce_scatter", tensor, [&](Progress& progress) {
        sum_ranges(tensor, ranges, progress);
    });
}

void MpiCollectives::all_gather(const at::Tensor& tensor, const std::vector<OwnedRange>& ranges) {
    check(tensor);
    guarded(
        "all_gather", tensor, [&](Progress& progress) { gather_ranges(tensor, ranges, progress); });
}

void MpiCollectives::broadcast(const at::Tensor& tensor, int root) {
    check(tensor);
    guarded("reduce_thread", tensor, [&](Progress& progress) { send_all(tensor, root, progress); });
}

void MpiCollectives::guarded(const char* fault,
                             const at::Tensor& tensor,
                             const std::function<void(Progress&)>& collective) {
    const activity::Waiting waiting;  // where this is the job's thread
    Progress progress{deadline_, abandoned_, others_};
    try {
        fault_point(fault, activity::now().update);
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
            Scratch& scratch = scratch_->front();
            switch (all_reduce_scheme(tensor.nbytes(), size())) {
                case AllReduceScheme::doubling:
                    return doubling_all_reduce(comm, values, count, scratch, progress);
                case AllReduceScheme::direct:
                    return direct_all_reduce(
                        comm, values, count, message_bytes_, scratch, progress);
                case AllReduceScheme::ring:
                    return long_all_reduce(comm, values, count, message_bytes_, scratch, progress);
                case AllReduceScheme::hierarchical:
                    return hierarchical_all_reduce(hierarchical(progress),
                                                   values_of(values, count));
            }
        });
}

HierarchicalRun MpiCollectives::hierarchical(Progress& progress) {
    return {
        mpi_handle(comm_), hosts_, message_bytes_, hierarchical_piece_bytes, *scratch_, progress};
}

void MpiCollectives::sum_ranges(const at::Tensor& tensor,
                                const std::vector<OwnedRange>& ranges,
                                Progress& progress) {
    const bool in_levels = is_hierarchical(tensor, size());
    const auto by_rank = in_levels ? ranges_by_rank(ranges, size()) : std::nullopt;
    if (in_levels && !by_rank)
        return sum(tensor, progress);
    AT_DISPATCH_FLOATING_TYPES_AND2(
        at::kBFloat16, at::kHalf, tensor.scalar_type(), "reduce_scatter_sum", [&] {
            auto* values = tensor.mutable_data_ptr<scalar_t>();
            const auto count = static_cast<std::size_t>(tensor.numel());
            if (by_rank)
                hierarchical_reduce_scatter(
                    hierarchical(progress), values_of(values, count), *by_rank);
            else
                direct_reduce_scatter(mpi_handle(comm_),
                                      values,
                                      count,
                                      order_of(tensor, size()),
                                      ranges,
                                      message_bytes_,
                                      scratch_->front(),
                                      progress);
        });
}

void MpiCollectives::gather_ranges(const at::Tensor& tensor,
                                   const std::vector<OwnedRange>& ranges,
                                   Progress& progress) {
    auto* const bytes = static_cast<std::byte*>(tensor.mutable_data_ptr());
    const std::size_t of_one = tensor.element_size();
    const auto by_rank =
        is_hierarchical(tensor, size()) ? ranges_by_rank(ranges, size()) : std::nullopt;
    if (by_rank)
        hierarchical_all_gather(hierarchical(progress),
                                {bytes, static_cast<std::size_t>(tensor.numel()), of_one, nullptr},
                                *by_rank);
    else
        direct_all_gather(mpi_handle(comm_), bytes, of_one, ranges, message_bytes_, progress);
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
