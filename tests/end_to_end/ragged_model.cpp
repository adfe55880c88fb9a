// hetseq with a small model of pairs of sentences of unequal length, and a writer of such pairs:
//   ragged_model write FOLDER SAMPLES SHARDS MEDIAN SPREAD LONGEST [contiguous]
//   ragged_model train --task pairs ...
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "hetseq/task/parts.hpp"
#include "hetseq/app/process.hpp"
#include "hetseq/app/program.hpp"

#include "data/generated_ragged_corpus.hpp"
#include "train/pair_model.hpp"

namespace {

using namespace hetseq;
using namespace hetseq::test;

const Option<std::int64_t>& width() {
    static const auto option =
        whole_number_option("width", "16", "width of the embeddings", 2, 4096);
    return option;
}

void add_pairs(Parts& parts) {
    parts.models.add("pairs",
                     [](const PartOptions& options) {
                         return std::make_shared<PairModel>(options.get(width()),
                                                            options.dropout.value_or(0));
                     },
                     {width()});
    parts.datasets.add("pairs", [](const PartOptions&) { return pair_schema(); });
    parts.batchings.add("pairs",
                        [](const PartOptions&) { return std::make_unique<PairCollator>(); });
    parts.tasks.add("pairs", {"pairs of sentences", "pairs", "pairs", "pairs", {}});
}

// Writes SAMPLES pairs into SHARDS files; a target is as long as its source, or one word longer.
int write_pairs(const std::vector<std::string>& words_of_line) {
    const std::string folder = words_of_line.at(0);
    const std::int64_t samples = std::stoll(words_of_line.at(1));
    const std::int64_t shards = std::stoll(words_of_line.at(2));
    const double median = std::stod(words_of_line.at(3)), spread = std::stod(words_of_line.at(4));
    const std::int64_t longest = std::stoll(words_of_line.at(5));
    const bool is_contiguous = words_of_line.size() > 6;
    std::filesystem::create_directories(folder);
    for (std::int64_t shard = 0; shard < shards; ++shard) {
        const std::int64_t first = samples * shard / shards;
        const std::int64_t rows = samples * (shard + 1) / shards - first;
        const auto length = [=](std::int64_t row) {
            return lognormal_length(first + row, median, spread, longest - 1);
        };
        const auto word = [=](std::int64_t row, std::int64_t column) {
            return 1 + (first + row * 7 + column * 3) % (words - 1);
        };
        std::vector<FilledDataset> datasets = ragged_datasets(
            {"source", H5T_STD_I32LE, length, word}, rows, is_contiguous ? 0 : 16384);
        for (FilledDataset& dataset : ragged_datasets(
                 {"target",
                  H5T_STD_I32LE,
                  [=](std::int64_t row) { return length(row) + row % 2; },
                  [=](std::int64_t row, std::int64_t column) { return word(row, 2 * column); }},
                 rows,
                 is_contiguous ? 0 : 16384))
            datasets.push_back(std::move(dataset));
        write_datasets(folder + "/" + shard_name(static_cast<std::size_t>(shard)), datasets);
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc > 2 && std::strcmp(argv[1], "write") == 0)
        return write_pairs({argv + 2, argv + argc});
    keep_freed_memory();
    Parts parts = builtin_parts();
    add_pairs(parts);
    return run_program(argc, argv, parts);
}
