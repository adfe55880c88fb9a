#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace hetseq {

class Communicator;
class HostComm;

/// The spread of repeated timings [ms]; each is that of the slowest rank.
struct TimeSpread {
    double median = 0;
    double p10 = 0;
    double p90 = 0;
};

/// The speed of one all-reduce of fp32 values.
struct ReduceBenchmark {
    std::int64_t bytes = 0;
    int repeats = 0;
    TimeSpread own_ms;                 // the communicator's
    std::optional<TimeSpread> mpi_ms;  // MPI_Allreduce's, in turn with it; empty on a GPU
    double ratio = 0;                  // MPI_Allreduce's median over ours; 0 without it
    double algorithm_gb_s = 0;         // bytes over our median [1e9 B/s]
    double bus_gb_s = 0;  // the same times 2 (n - 1) / n: what each link carries (nccl-tests)
};

struct ReduceBenchmarkOptions {
    std::vector<std::int64_t> bytes{16'384, 262'144, 1'000'000, 5'000'000, 45'000'000};
    int repeats = 21;
    int warm_up = 3;
};

/// Collective. Times `communicator`'s all-reduce for each size. On a CPU it alternates with
/// MPI_Allreduce, so that both meet the same disturbances. The result is the same on all ranks.
std::vector<ReduceBenchmark> benchmark_all_reduce(const HostComm& world,
                                                  Communicator& communicator,
                                                  const ReduceBenchmarkOptions& options = {});

}  // namespace hetseq
