#include "hetseq/data/corpus_options.hpp"

#include "hetseq/data/data_weights.hpp"

namespace hetseq {

OptionsOf<CorpusOptions> corpus_options() {
    return OptionsOf<CorpusOptions>()
        .heading("Data")
        .add(&CorpusOptions::data_weights,
             Option<std::vector<double>>(
                 {"data-weights",
                  "LIST",
                  "",
                  "how often an epoch takes each sample, a number for each of the names in --data: "
                  "2,0.5; empty: once"},
                 data_weights)
                 .fixed_with(FixedWith::position))
        .add(&CorpusOptions::shuffle_blocks,
             whole_number_option(
                 "shuffle-blocks", "8", "number of blocks whose samples are mixed", 1)
                 .fixed_with(FixedWith::position))
        .add(&CorpusOptions::block_length,
             whole_number_option("block-length", "0", "samples in a block; 0: chosen from the data")
                 .fixed_with(FixedWith::position))
        .add(&CorpusOptions::io,
             named_value_option<IoMode>("io",
                                        {{"collective", IoMode::collective},
                                         {"independent", IoMode::independent},
                                         {"serial", IoMode::serial}},
                                        "collective",
                                        "how files are read: collective, independent or serial"))
        .add(&CorpusOptions::skip_too_long,
             switch_option("skip-too-long",
                           "leave samples out that are longer than --max-length, and say how many; "
                           "otherwise they are an error")
                 .fixed_with(FixedWith::position));
}

}  // namespace hetseq
