#pragma once

#include <cstdint>
#include <string>

#include "hetseq/data/corpus.hpp"

namespace hetseq {

class HostComm;

struct DataBenchmarkOptions {
    CorpusOptions corpus;
    std::int64_t batch_size = 256;  // samples a rank takes at a time
    int repeats = 5;
};

/// Samples per second and rank, medians over the repeats.
struct DataBenchmark {
    std::int64_t samples = 0;
    std::int64_t blocks = 0;
    double read_per_second = 0;    // first epoch: every block comes from its file
    double cached_per_second = 0;  // second epoch: those that fit come from the cache
};

/// Collective. Reads the corpus through loaders as fast as it can, two epochs on a fresh cache each
/// time, with a collator that only hands rows on. Opening files is not counted.
DataBenchmark benchmark_data(const HostComm& world,
                             DataContext& context,
                             const std::string& spec,
                             const CorpusSchema& schema,
                             const DataBenchmarkOptions& options);

}  // namespace hetseq
