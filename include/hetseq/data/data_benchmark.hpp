#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hetseq/data/corpus.hpp"
#include "hetseq/data/corpus_plan.hpp"
#include "hetseq/data/order/micro_batch_cap.hpp"

namespace hetseq {

class HostComm;

struct DataBenchmarkOptions {
    CorpusOptions corpus;
    BatchSize batch;                       // of all ranks together
    std::vector<std::int64_t> capacities;  // by rank; batches are cut in proportion to them
    MicroBatchCap cap;                     // of this rank's micro-batches
    int repeats = 5;
};

/// Times and rates are medians over the repeats.
struct DataBenchmark {
    std::int64_t samples = 0;  // an epoch
    std::int64_t bytes = 0;    // of all values in memory
    std::int64_t blocks = 0;
    double open_s = 0;  // for headers and offsets, up to the plan of the batches
    // Samples per second and rank. In the first epoch every block comes from its file, in the
    // second one those that fit come from the cache.
    double read_per_second = 0;
    double cached_per_second = 0;
    double read_cpu_s = 0;  // processor time of all ranks for an epoch
    double cached_cpu_s = 0;
};

/// Collective. Reads the corpus through loaders as fast as it can, two epochs on a fresh cache each
/// time, with a collator that only hands rows on. Rates leave out the time for opening files.
DataBenchmark benchmark_data(const HostComm& world,
                             DataContext& context,
                             const std::string& spec,
                             const CorpusSchema& schema,
                             const DataBenchmarkOptions& options);

}  // namespace hetseq
