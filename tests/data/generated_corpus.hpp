#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include <hdf5.h>
#include <unistd.h>

#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/data/hdf5/hdf5.hpp"
#include "hetseq/data/schema.hpp"

/// Corpora whose every value is a formula of the sample's number, written as HDF5.
namespace hetseq::test {

/// A folder that rank 0 makes and removes. Collective.
class SharedFolder {
public:
    explicit SharedFolder(const HostComm& world) : world_{world} {
        std::string name = (std::filesystem::temp_directory_path() / "hetseq-XXXXXX").string();
        if (world.rank() == 0)
            ::mkdtemp(name.data());
        path_ = world.broadcast(name, 0);
    }
    ~SharedFolder() {
        std::error_code ignored;
        world_.barrier();
        if (world_.rank() == 0)
            std::filesystem::remove_all(path_, ignored);
    }
    SharedFolder(const SharedFolder&) = delete;
    SharedFolder& operator=(const SharedFolder&) = delete;

    std::string operator/(const std::string& name) const { return path_ + "/" + name; }
    const std::string& path() const { return path_; }

private:
    const HostComm& world_;
    std::string path_;
};

enum class Storage { contiguous, gzip };

/// One dataset to write.
struct DatasetToWrite {
    std::string name;
    hid_t type = H5T_NATIVE_INT32;
    std::vector<hsize_t> shape;  // samples first
    std::vector<hsize_t> chunk;  // empty: contiguous; otherwise gzip
};

/// `value(row, column)`: columns counted over the flattened row.
using ValueFormula = std::function<std::int64_t(std::int64_t row, std::int64_t column)>;

inline void write_dataset(hid_t file, const DatasetToWrite& dataset, const ValueFormula& value) {
    const auto rank = static_cast<int>(dataset.shape.size());
    const Hdf5Space space{HETSEQ_HDF5_TRY(H5Screate_simple(rank, dataset.shape.data(), nullptr))};
    const Hdf5Properties create{HETSEQ_HDF5_TRY(H5Pcreate(H5P_DATASET_CREATE))};
    if (!dataset.chunk.empty()) {
        std::vector<hsize_t> chunk = dataset.chunk;
        for (std::size_t i = 0; i < chunk.size(); ++i)
            chunk[i] = std::min(chunk[i], dataset.shape[i]);
        HETSEQ_HDF5_TRY(H5Pset_chunk(create.get(), rank, chunk.data()));
        HETSEQ_HDF5_TRY(H5Pset_deflate(create.get(), 4));
    }
    const Hdf5Dataset written{HETSEQ_HDF5_TRY(H5Dcreate2(file,
                                                         dataset.name.c_str(),
                                                         dataset.type,
                                                         space.get(),
                                                         H5P_DEFAULT,
                                                         create.get(),
                                                         H5P_DEFAULT))};
    const auto rows = static_cast<std::int64_t>(dataset.shape[0]);
    std::int64_t columns = 1;
    for (std::size_t i = 1; i < dataset.shape.size(); ++i)
        columns *= static_cast<std::int64_t>(dataset.shape[i]);
    std::vector<std::int64_t> values(static_cast<std::size_t>(rows * columns));
    for (std::int64_t i = 0; i < rows * columns; ++i)
        values[static_cast<std::size_t>(i)] = value(i / columns, i % columns);
    HETSEQ_HDF5_TRY(
        H5Dwrite(written.get(), H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()));
}

inline Hdf5File create_file(const std::string& path) {
    initialize_hdf5();
    return Hdf5File{
        HETSEQ_HDF5_TRY(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT))};
}

// A corpus like BERT's pretraining shards, smaller.
constexpr std::int64_t sequence = 16;
constexpr std::int64_t predictions = 4;
constexpr std::int64_t vocabulary = 1000;

inline std::int64_t input_id(std::int64_t sample, std::int64_t column) {
    return (sample * 31 + column * 7) % vocabulary;
}
inline std::int64_t input_mask(std::int64_t sample, std::int64_t column) {
    return column <= sample % sequence ? 1 : 0;
}
inline std::int64_t masked_position(std::int64_t sample, std::int64_t column) {
    return (sample + column) % sequence;
}
inline std::int64_t next_sentence(std::int64_t sample) {
    return sample % 3 == 0 ? 1 : 0;
}

/// Sums over samples [0, n), by the formulas above.
inline std::int64_t formula_sum(std::int64_t n, std::int64_t columns, const ValueFormula& value) {
    std::int64_t sum = 0;
    for (std::int64_t sample = 0; sample < n; ++sample)
        for (std::int64_t column = 0; column < columns; ++column)
            sum += value(sample, column);
    return sum;
}

inline CorpusSchema bert_like_schema() {
    return {.kind = "BERT pretraining",
            .fields = {{.name = "input_ids",
                        .rank = 2,
                        .type = ElementType::int32,
                        .row_shape = {-1},
                        .minimum = 0,
                        .maximum = vocabulary - 1,
                        .meaning = "ids of the vocabulary (vocab_size 1000)"},
                       {.name = "input_mask",
                        .rank = 2,
                        .type = ElementType::int8,
                        .row_shape = {-1},
                        .same_row_shape_as = "input_ids",
                        .minimum = 0,
                        .maximum = 1,
                        .meaning = "0 for padding, 1 for a token"},
                       {.name = "masked_lm_positions",
                        .rank = 2,
                        .type = ElementType::int32,
                        .row_shape = {-1},
                        .minimum = 0,
                        .below_row_length_of = "input_ids",
                        .meaning = "positions in the sequence"},
                       {.name = "next_sentence_labels",
                        .rank = 1,
                        .type = ElementType::int8,
                        .row_shape = {},
                        .minimum = 0,
                        .maximum = 1,
                        .meaning = "0 for the next sentence, 1 for a random one"}}};
}

/// A dataset and its values.
struct FilledDataset {
    DatasetToWrite dataset;
    ValueFormula value;
};

/// Samples [first, first + samples), chunked as h5py does it: narrower than a row, unlike over the
/// datasets.
inline std::vector<FilledDataset> bert_like_datasets(std::int64_t first,
                                                     std::int64_t samples,
                                                     Storage storage) {
    const auto n = static_cast<hsize_t>(samples);
    const auto chunk = [&](std::vector<hsize_t> lengths) {
        return storage == Storage::gzip && samples > 0 ? lengths : std::vector<hsize_t>{};
    };
    return {{{"input_ids", H5T_STD_I32LE, {n, sequence}, chunk({3, sequence / 2})},
             [=](auto row, auto column) { return input_id(first + row, column); }},
            {{"input_mask", H5T_STD_I8LE, {n, sequence}, chunk({5, sequence})},
             [=](auto row, auto column) { return input_mask(first + row, column); }},
            {{"masked_lm_positions", H5T_STD_I32LE, {n, predictions}, chunk({6, 2})},
             [=](auto row, auto column) { return masked_position(first + row, column); }},
            {{"next_sentence_labels", H5T_STD_I8LE, {n}, chunk({n})},
             [=](auto row, auto) { return next_sentence(first + row); }}};
}

inline void write_datasets(const std::string& path, const std::vector<FilledDataset>& datasets) {
    const Hdf5File file = create_file(path);
    for (const FilledDataset& filled : datasets)
        write_dataset(file.get(), filled.dataset, filled.value);
}

/// "shard-00003.h5"
inline std::string shard_name(std::size_t index) {
    const std::string number = std::to_string(index);
    return "shard-" + std::string(5 - number.size(), '0') + number + ".h5";
}

/// Collective: rank 0 writes shards of these sizes, consecutive samples, and returns how many.
inline std::int64_t write_bert_like_corpus(const HostComm& world,
                                           const SharedFolder& folder,
                                           const std::vector<std::int64_t>& sizes,
                                           Storage storage = Storage::gzip) {
    agree_on(world, [&] {
        std::int64_t first = 0;
        for (std::size_t i = 0; i < sizes.size() && world.rank() == 0; ++i) {
            write_datasets(folder / shard_name(i), bert_like_datasets(first, sizes[i], storage));
            first += sizes[i];
        }
    });
    return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
}

}  // namespace hetseq::test
