#pragma once

#include <cstdint>
#include <vector>

#include "hetseq/options/options_of.hpp"
#include "hetseq/data/blocks/io_mode.hpp"

namespace hetseq {

struct CorpusOptions {
    /// How often an epoch takes a sample, by name in the corpus's spec; empty: once. They change
    /// the shuffled order only.
    std::vector<double> data_weights{};
    std::int64_t shuffle_blocks = 8;  // blocks mixed at once
    std::int64_t block_length =
        0;  // samples; 0: from the data (recorded, since it defines the order)
    std::int64_t cache_mb = 512;  // of each host, this corpus [MiB]; changes speed only
    IoMode io = IoMode::collective;
    std::int64_t max_length = 0;  // values of a row of a sample that is used; 0: any
    bool skip_too_long = false;   // longer samples are left out; otherwise they are an error
};

/// All but cache_mb, which is a rank's, and max_length, which follows from what ranks can hold.
OptionsOf<CorpusOptions> corpus_options();

}  // namespace hetseq
