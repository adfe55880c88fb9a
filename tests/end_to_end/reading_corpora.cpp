// Corpora for jobs/scaling/reading.sh, and hetseq with the datasets that they are made of:
//   reading_corpora write FOLDER SAMPLES SHARDS
//     FOLDER/ragged and FOLDER/fixed: the same values, in rows of unequal and of equal length
//   reading_corpora write-offsets FILE SAMPLES contiguous|gzip
//     the offsets of a ragged corpus, and datasets of values that were never filled
//   reading_corpora open PATH
//     opens a ragged corpus and plans its batches; prints the seconds
//   reading_corpora bench data --task ragged|fixed ...
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "hetseq/util/clock.hpp"
#include "hetseq/comm/mpi/mpi_environment.hpp"
#include "hetseq/data/corpus.hpp"
#include "hetseq/data/corpus_plan.hpp"
#include "hetseq/data/data_context.hpp"
#include "hetseq/task/parts.hpp"
#include "hetseq/app/process.hpp"
#include "hetseq/app/program.hpp"

#include "data/generated_ragged_corpus.hpp"
#include "train/pair_model.hpp"

namespace {

using namespace hetseq;
using namespace hetseq::test;

constexpr std::int64_t vocabulary_size = 32000;
constexpr double median_length = 20, spread = 0.6;  // of the logarithm
constexpr std::int64_t longest = 250, fixed_length = 24;
constexpr hsize_t chunk_values = 16384, chunk_offsets = 4096;  // 64 KiB and 32 KiB
constexpr const char* names[] = {"source", "target"};

// The mean is about `fixed_length`.
std::int64_t length_of(std::int64_t sample) {
    return lognormal_length(sample, median_length, spread, longest);
}

// A word's number, as rare as words of natural language are: its rank is about 1 over its share.
std::int64_t word(std::int64_t place) {
    const double u = fraction(~static_cast<std::uint64_t>(place));
    return static_cast<std::int64_t>(std::exp(u * std::log(double(vocabulary_size)))) - 1;
}

CorpusSchema corpus_schema(bool is_ragged) {
    CorpusSchema schema{.kind = "pairs of sentences", .fields = {}};
    for (const char* name : names) {
        FieldSchema field{.name = name,
                          .type = ElementType::int32,
                          .is_ragged = is_ragged,
                          .minimum = 0,
                          .maximum = vocabulary_size - 1};
        if (!is_ragged) {
            field.rank = 2;
            field.row_shape = {fixed_length};
        }
        schema.fields.push_back(field);
    }
    if (is_ragged)
        schema.units_field = "target";
    return schema;
}

// The samples [first, first + rows) as ragged rows, and their values as rows of one length. A
// target is as long as its source. Values are counted over the corpus.
void write_shard(const std::string& folder,
                 const std::string& shard,
                 std::int64_t first,
                 std::int64_t rows) {
    std::vector<std::int64_t> begins{0};
    for (std::int64_t row = 0; row < rows; ++row)
        begins.push_back(begins.back() + length_of(first + row));
    const auto length = [&](std::int64_t row) {
        return begins[static_cast<std::size_t>(row) + 1] - begins[static_cast<std::size_t>(row)];
    };
    const auto fixed_rows = static_cast<hsize_t>(begins.back() / fixed_length);
    std::vector<FilledDataset> ragged, fixed;
    for (const char* name : names) {
        const std::int64_t shift = (first * 2 + (name == names[1] ? 1 : 0)) * longest;
        for (FilledDataset& dataset : ragged_datasets(
                 {name,
                  H5T_STD_I32LE,
                  length,
                  [&, shift](std::int64_t row, std::int64_t column) {
                      return word(shift + begins[static_cast<std::size_t>(row)] + column);
                  }},
                 rows,
                 chunk_values))
            ragged.push_back(std::move(dataset));
        ragged.back().dataset.chunk = {chunk_offsets};
        fixed.push_back({{name,
                          H5T_STD_I32LE,
                          {fixed_rows, fixed_length},
                          {chunk_values / fixed_length, fixed_length}},
                         [shift](std::int64_t row, std::int64_t column) {
                             return word(shift + row * fixed_length + column);
                         }});
    }
    write_datasets(folder + "/ragged/" + shard, ragged);
    write_datasets(folder + "/fixed/" + shard, fixed);
}

int write_corpora(const std::vector<std::string>& words_of_line) {
    const std::string folder = words_of_line.at(0);
    const std::int64_t samples = std::stoll(words_of_line.at(1));
    const std::int64_t shards = std::stoll(words_of_line.at(2));
    for (const char* kind : {"/ragged", "/fixed"})
        std::filesystem::create_directories(folder + kind);
    for (std::int64_t shard = 0; shard < shards; ++shard) {
        const std::int64_t first = samples * shard / shards;
        write_shard(folder,
                    shard_name(static_cast<std::size_t>(shard)),
                    first,
                    samples * (shard + 1) / shards - first);
    }
    return 0;
}

// `chunk`: 0: contiguous; otherwise gzip.
Hdf5Dataset create_dataset(
    hid_t file, const std::string& name, hid_t type, hsize_t length, hsize_t chunk) {
    const Hdf5Space space{HETSEQ_HDF5_TRY(H5Screate_simple(1, &length, nullptr))};
    const Hdf5Properties create{HETSEQ_HDF5_TRY(H5Pcreate(H5P_DATASET_CREATE))};
    if (chunk > 0) {
        chunk = std::min(chunk, length);
        HETSEQ_HDF5_TRY(H5Pset_chunk(create.get(), 1, &chunk));
        HETSEQ_HDF5_TRY(H5Pset_deflate(create.get(), 4));
    }
    return Hdf5Dataset{HETSEQ_HDF5_TRY(
        H5Dcreate2(file, name.c_str(), type, space.get(), H5P_DEFAULT, create.get(), H5P_DEFAULT))};
}

// Piece by piece, so that memory does not hold them all. Returns the last one.
std::int64_t write_offsets(hid_t dataset, std::int64_t samples) {
    constexpr std::int64_t piece = 1 << 20;
    const Hdf5Space space{HETSEQ_HDF5_TRY(H5Dget_space(dataset))};
    std::int64_t next = 0;  // the offset behind those of the pieces before
    for (std::int64_t begin = 0; begin <= samples; begin += piece) {
        std::vector<std::int64_t> offsets;
        for (std::int64_t i = begin; i < std::min(begin + piece, samples + 1); ++i) {
            offsets.push_back(next);
            next += i < samples ? length_of(i) : 0;
        }
        const auto start = static_cast<hsize_t>(begin);
        const hsize_t count = offsets.size();
        const Hdf5Space memory{HETSEQ_HDF5_TRY(H5Screate_simple(1, &count, nullptr))};
        HETSEQ_HDF5_TRY(
            H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, &start, nullptr, &count, nullptr));
        HETSEQ_HDF5_TRY(H5Dwrite(
            dataset, H5T_NATIVE_INT64, memory.get(), space.get(), H5P_DEFAULT, offsets.data()));
    }
    return next;
}

int write_offsets_alone(const std::vector<std::string>& words_of_line) {
    const std::int64_t samples = std::stoll(words_of_line.at(1));
    const bool is_gzip = words_of_line.at(2) == "gzip";
    const Hdf5File file = create_file(words_of_line.at(0));
    for (const char* name : names) {
        const Hdf5Dataset offsets = create_dataset(file.get(),
                                                   offsets_name(name),
                                                   H5T_STD_I64LE,
                                                   static_cast<hsize_t>(samples + 1),
                                                   is_gzip ? chunk_offsets : 0);
        const std::int64_t values = write_offsets(offsets.get(), samples);
        create_dataset(file.get(),
                       name,
                       H5T_STD_I32LE,
                       static_cast<hsize_t>(values),
                       is_gzip ? chunk_values : 0);
    }
    return 0;
}

int open_corpus(int argc, char** argv, const std::string& path) {
    const MpiEnvironment environment(argc, argv);
    const HostComm world = HostComm::world(environment);
    DataContext context{world, environment.thread_support() == ThreadSupport::multiple};
    world.barrier();
    const double start = monotonic_seconds(), cpu_start = process_cpu_seconds();
    Corpus corpus{context, path, corpus_schema(true), {}};
    const std::int64_t batches = make_batch_plan(corpus, {.units = 32768}, 1).batches_per_epoch();
    const double wall_s = world.all_reduce(monotonic_seconds() - start, ReduceOp::max);
    const double cpu_s = world.all_reduce(process_cpu_seconds() - cpu_start, ReduceOp::sum);
    if (world.rank() == 0)
        std::printf("%d ranks, %lld samples, %lld batches: %.2f s, %.2f s of processor time\n",
                    world.size(),
                    static_cast<long long>(corpus.samples()),
                    static_cast<long long>(batches),
                    wall_s,
                    cpu_s);
    return 0;
}

Parts parts_for_reading() {
    Parts parts = builtin_parts();
    parts.models.add("pairs",
                     [](const PartOptions&) { return std::make_shared<PairModel>(16, 0); });
    parts.batchings.add("pairs",
                        [](const PartOptions&) { return std::make_unique<PairCollator>(); });
    for (const char* name : {"ragged", "fixed"}) {
        const bool is_ragged = std::strcmp(name, "ragged") == 0;
        parts.datasets.add(name, [=](const PartOptions&) { return corpus_schema(is_ragged); });
        parts.tasks.add(name, {"pairs of sentences", "pairs", name, "pairs", {}});
    }
    return parts;
}

}  // namespace

int main(int argc, char** argv) {
    const std::string command = argc > 2 ? argv[1] : "";
    if (command == "write")
        return write_corpora({argv + 2, argv + argc});
    if (command == "write-offsets")
        return write_offsets_alone({argv + 2, argv + argc});
    if (command == "open")
        return open_corpus(argc, argv, argv[2]);
    keep_freed_memory();
    return run_program(argc, argv, parts_for_reading());
}
