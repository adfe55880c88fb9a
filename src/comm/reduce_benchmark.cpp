#include "hetseq/comm/reduce_benchmark.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include <mpi.h>

#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>

#include "hetseq/util/error.hpp"
#include "hetseq/comm/communicator.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/mpi/mpi_handle.hpp"
#include "hetseq/comm/mpi/mpi_try.hpp"

namespace hetseq {

namespace {

// Collective. The time of `run` on the slowest rank [ms]. All ranks start together after
// MPI_Barrier; a sleeping barrier would end up to 200 us apart.
template <class Run>
double slowest_ms(const HostComm& world, Run&& run) {
    if (mpi_handle(world) != MPI_COMM_NULL)
        MPI_TRY(MPI_Barrier(mpi_handle(world)));
    const auto start = std::chrono::steady_clock::now();
    run();
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
    return world.all_reduce(time.count(), ReduceOp::max);
}

// Nearest rank.
double percentile(const std::vector<double>& sorted, double fraction) {
    const double last = static_cast<double>(sorted.size()) - 1;
    return sorted[static_cast<std::size_t>(std::lround(fraction * last))];
}

TimeSpread spread(std::vector<double> times) {
    std::sort(times.begin(), times.end());
    return {percentile(times, 0.5), percentile(times, 0.1), percentile(times, 0.9)};
}

void mpi_all_reduce(const HostComm& world, const at::Tensor& tensor) {
    MPI_TRY(MPI_Allreduce(MPI_IN_PLACE,
                          tensor.mutable_data_ptr<float>(),
                          static_cast<int>(tensor.numel()),
                          MPI_FLOAT,
                          MPI_SUM,
                          mpi_handle(world)));
}

ReduceBenchmark measure(const HostComm& world,
                        Communicator& communicator,
                        std::int64_t bytes,
                        const ReduceBenchmarkOptions& options) {
    const bool against_mpi =
        world.size() > 1 &&
        world.all_reduce(std::int64_t{communicator.device().is_cpu()}, ReduceOp::min) == 1;
    const at::Tensor tensor =
        at::zeros({bytes / 4}, at::TensorOptions(at::kFloat).device(communicator.device()));
    std::vector<double> own;
    std::vector<double> mpi;
    for (int i = 0; i < options.warm_up + options.repeats; ++i) {
        own.push_back(slowest_ms(world, [&] { communicator.all_reduce_sum(tensor); }));
        if (against_mpi)
            mpi.push_back(slowest_ms(world, [&] { mpi_all_reduce(world, tensor); }));
    }
    own.erase(own.begin(), own.begin() + options.warm_up);

    ReduceBenchmark result;
    result.bytes = tensor.numel() * 4;
    result.repeats = options.repeats;
    result.own_ms = spread(own);
    if (against_mpi) {
        mpi.erase(mpi.begin(), mpi.begin() + options.warm_up);
        result.mpi_ms = spread(mpi);
        result.ratio = result.mpi_ms->median / result.own_ms.median;
    }
    const double n = world.size();
    result.algorithm_gb_s = static_cast<double>(result.bytes) / result.own_ms.median / 1e6;
    result.bus_gb_s = result.algorithm_gb_s * 2 * (n - 1) / n;
    return result;
}

}  // namespace

std::vector<ReduceBenchmark> benchmark_all_reduce(const HostComm& world,
                                                  Communicator& communicator,
                                                  const ReduceBenchmarkOptions& options) {
    HETSEQ_ASSERT(options.repeats > 0 && options.warm_up >= 0);
    std::vector<ReduceBenchmark> results;
    for (const std::int64_t bytes : options.bytes)
        results.push_back(measure(world, communicator, bytes, options));
    return results;
}

}  // namespace hetseq
