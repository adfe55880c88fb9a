#include "hetseq/data/corpus_identity.hpp"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <numeric>
#include <optional>

#include "hetseq/util/error.hpp"
#include "hetseq/util/files/checksum.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/data/blocks/block_layout.hpp"
#include "hetseq/data/files/first_failure.hpp"
#include "hetseq/data/files/row_offsets.hpp"
#include "hetseq/data/files/shard_set.hpp"
#include "hetseq/data/hdf5/hdf5_dataset.hpp"
#include "hetseq/data/hdf5/hdf5_types.hpp"
#include "hetseq/data/order/keyed_permutation.hpp"

namespace hetseq {

namespace {

constexpr std::int64_t most_shards = 16;
constexpr std::int64_t most_rows = 64;
constexpr std::int64_t most_bytes_read = std::int64_t{4}
                                         << 20;    // of one shard; one row may have more
constexpr std::uint64_t key = 0x6865747365712031;  // any number, but always the same

using Rows = std::vector<std::int64_t>;  // of one shard, ascending

// The first `count` of a keyed permutation of [0, n), sorted.
std::vector<std::int64_t> choose(std::int64_t n, std::int64_t count, std::uint64_t own_key) {
    const KeyedPermutation permutation(n, own_key);
    std::vector<std::int64_t> chosen;
    for (std::int64_t i = 0; i < std::min(n, count); ++i)
        chosen.push_back(permutation(i));
    std::sort(chosen.begin(), chosen.end());
    return chosen;
}

// Chooses `count` rows of a shard of `samples`, at most one in each `unit` neighbours.
Rows choose_rows(std::int64_t samples,
                 std::int64_t unit,
                 std::int64_t count,
                 std::uint64_t own_key) {
    Rows rows;
    for (const std::int64_t part : choose((samples + unit - 1) / unit, count, own_key)) {
        const std::int64_t length = std::min(unit, samples - part * unit);
        const std::uint64_t any = mix_keys(own_key, static_cast<std::uint64_t>(part));
        rows.push_back(part * unit +
                       static_cast<std::int64_t>(any % static_cast<std::uint64_t>(length)));
    }
    return rows;
}

// True if the rows that `before` names exist, and are no more than are ever chosen.
bool has_rows_of(const ShardSet& shards, const CorpusIdentity& before) {
    std::size_t count = 0;
    for (const CorpusIdentity::Shard& shard : before.shards)
        count += shard.rows.size();
    if (count > most_rows)
        return false;
    return std::equal(shards.shards().begin(),
                      shards.shards().end(),
                      before.shards.begin(),
                      before.shards.end(),
                      [](const Shard& shard, const CorpusIdentity::Shard& known) {
                          return shard.samples() == known.samples &&
                                 std::is_sorted(known.rows.begin(), known.rows.end()) &&
                                 (known.rows.empty() ||
                                  (known.rows.front() >= 0 && known.rows.back() < known.samples));
                      });
}

std::vector<Rows> rows_of(const CorpusIdentity& identity) {
    std::vector<Rows> rows;
    for (const CorpusIdentity::Shard& shard : identity.shards)
        rows.push_back(shard.rows);
    return rows;
}

std::string dataset_text(const ShardSet& shards, std::size_t field) {
    const FieldSchema& schema = shards.schema().fields[field];
    return schema.name + " (" +
           (schema.is_ragged ? "ragged" : row_shape_text(shards.row_shape(field))) + ")";
}

CorpusIdentity describe(const ShardSet& shards, const std::vector<Rows>& rows) {
    CorpusIdentity identity;
    for (std::size_t i = 0; i < shards.schema().fields.size(); ++i)
        identity.datasets.push_back(dataset_text(shards, i));
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const Shard& shard = shards.shards()[i];
        identity.shards.push_back({std::filesystem::path(shard.path).filename().string(),
                                   shard.stamp.bytes,
                                   shard.samples(),
                                   rows[i]});
    }
    return identity;
}

// Rows [begin, begin + count) of a dataset, or such values of a ragged field.
struct Run {
    hsize_t begin = 0;
    hsize_t count = 1;
};

// Selects `runs` in the dataspace of a dataset whose rows have `row_shape`.
void select_runs(hid_t space,
                 const std::vector<Run>& runs,
                 const std::vector<std::int64_t>& row_shape) {
    std::vector<hsize_t> start(1 + row_shape.size(), 0);
    std::vector<hsize_t> count{1};
    for (const std::int64_t length : row_shape)
        count.push_back(static_cast<hsize_t>(length));
    HETSEQ_HDF5_TRY(H5Sselect_none(space));
    for (const Run& run : runs) {
        start[0] = run.begin;
        count[0] = run.count;
        if (run.count > 0)
            HETSEQ_HDF5_TRY(H5Sselect_hyperslab(
                space, H5S_SELECT_OR, start.data(), nullptr, count.data(), nullptr));
    }
}

// Reads the values of `runs` as 8 bytes each (booleans as one), however they are stored. It is one
// read, so that a compressed chunk is read once.
std::vector<std::byte> read_runs(hid_t file,
                                 const ShardSet& shards,
                                 const Shard& shard,
                                 std::size_t field,
                                 const std::vector<Run>& runs) {
    const FieldSchema& schema = shards.schema().fields[field];
    const auto& row_shape = shards.row_shape(field);
    if (std::find(row_shape.begin(), row_shape.end(), 0) != row_shape.end())
        return {};
    const StoredType& stored = shard.header.datasets[field].type;
    const ElementType wide = schema.type == ElementType::boolean ? checked_type(stored, schema.type)
                             : is_real(schema.type)              ? ElementType::float64
                                                                 : ElementType::int64;
    const Hdf5Dataset dataset = open_hdf5_dataset(file, shard.path, schema.name);
    const Hdf5Space space{HETSEQ_HDF5_TRY(H5Dget_space(dataset.get()))};
    select_runs(space.get(), runs, row_shape);
    const auto count = static_cast<hsize_t>(HETSEQ_HDF5_TRY(H5Sget_select_npoints(space.get())));
    const Hdf5Space memory{HETSEQ_HDF5_TRY(H5Screate_simple(1, &count, nullptr))};
    const Hdf5Type type = memory_type(stored, wide);
    std::vector<std::byte> values(count * size_of(wide));
    if (H5Dread(dataset.get(), type.get(), memory.get(), space.get(), H5P_DEFAULT, values.data()) <
        0)
        throw IoError(shard.path + ": reading " + std::to_string(runs.size()) +
                          " rows of dataset '" + schema.name + "' failed",
                      hdf5_error_message(),
                      "check or copy the file again");
    return values;
}

// Where the values of `rows` lie in each ragged field.
std::vector<std::vector<Run>> ragged_runs(const ShardSet& shards,
                                          std::size_t shard,
                                          const Rows& rows) {
    const OffsetsFile file{shards, shard};
    std::vector<std::vector<Run>> runs(shards.ragged_fields().size());
    for (const std::int64_t row : rows) {
        const RowOffsets offsets = file.read(row, row + 1);
        for (std::size_t k = 0; k < offsets.size(); ++k)
            runs[k].push_back({static_cast<hsize_t>(offsets[k][0]),
                               static_cast<hsize_t>(offsets[k][1] - offsets[k][0])});
    }
    return runs;
}

std::uint64_t checksum_of(const ShardSet& shards, std::size_t index, const Rows& rows) {
    const Shard& shard = shards.shards()[index];
    const Hdf5Properties access{HETSEQ_HDF5_TRY(H5Pcreate(H5P_FILE_ACCESS))};
    HETSEQ_HDF5_TRY(H5Pset_file_locking(access.get(), 0, 1));
    const Hdf5File file{H5Fopen(shard.path.c_str(), H5F_ACC_RDONLY, access.get())};
    if (!file)
        throw IoError("cannot open " + shard.path, hdf5_error_message(), "");
    std::vector<Run> fixed;
    for (const std::int64_t row : rows)
        fixed.push_back({static_cast<hsize_t>(row), 1});
    const auto ragged = shards.ragged_fields().empty() ? std::vector<std::vector<Run>>{}
                                                       : ragged_runs(shards, index, rows);
    auto next = ragged.begin();
    Xxh64 checksum;
    for (std::size_t i = 0; i < shards.schema().fields.size(); ++i) {
        const bool is_ragged = shards.schema().fields[i].is_ragged;
        const std::vector<Run>& runs = is_ragged ? *next++ : fixed;
        for (std::size_t k = 0; is_ragged && k < runs.size(); ++k)
            checksum.update(&runs[k].count, sizeof runs[k].count);
        const std::vector<std::byte> values = read_runs(file.get(), shards, shard, i, runs);
        checksum.update(values.data(), values.size());
    }
    return checksum.digest();
}

// Collective. The result is by shard; 0 where there are no rows. Of the shards that have rows, rank
// r reads numbers r, r + ranks, r + 2 ranks and so on.
std::vector<std::int64_t> checksums_of(const HostComm& world,
                                       const ShardSet& shards,
                                       const std::vector<Rows>& rows) {
    std::vector<std::int64_t> checksums(rows.size(), 0);
    std::optional<OrderedFailure> failure;
    int turn = 0;
    for (std::size_t i = 0; i < rows.size() && !failure; ++i) {
        if (rows[i].empty() || turn++ % world.size() != world.rank())
            continue;
        try {
            checksums[i] = static_cast<std::int64_t>(checksum_of(shards, i, rows[i]));
        } catch (...) {
            failure = OrderedFailure{static_cast<std::int64_t>(i), std::current_exception()};
        }
    }
    agree_on_first(world, failure);
    world.all_reduce(checksums, ReduceOp::sum);
    return checksums;
}

bool has_same_rows(const CorpusIdentity::Shard& here, const CorpusIdentity::Shard& there) {
    return !here.rows.empty() && here.rows == there.rows && here.checksum == there.checksum;
}

// `is_copy`: the sizes of all shards have changed, so the size of this one may differ.
std::string difference(const CorpusIdentity::Shard& here,
                       const CorpusIdentity::Shard& there,
                       bool is_copy) {
    const std::string shard = "shard " + here.name;
    if (here.name != there.name)
        return shard + " here, " + there.name + " there in its place";
    if (here.samples != there.samples)
        return shard + " has " + std::to_string(here.samples) + " samples here, " +
               std::to_string(there.samples) + " there";
    if (here.rows == there.rows && !here.rows.empty() && here.checksum != there.checksum)
        return shard + " holds other values; " + std::to_string(here.rows.size()) +
               " of its rows were compared, the first of them row " +
               std::to_string(here.rows.front());
    if (here.bytes != there.bytes && !is_copy && !has_same_rows(here, there))
        return shard + " has " + std::to_string(here.bytes) + " bytes here, " +
               std::to_string(there.bytes) + " there";
    return "";
}

}  // namespace

std::vector<Rows> telling_rows(const ShardSet& shards) {
    std::vector<std::size_t> filled;
    for (std::size_t i = 0; i < shards.shards().size(); ++i) {
        if (shards.shards()[i].samples() > 0)
            filled.push_back(i);
    }
    const auto among = static_cast<std::int64_t>(filled.size());
    std::int64_t row_bytes = 0;  // as they are read
    for (std::size_t i = 0; i < shards.schema().fields.size(); ++i)
        row_bytes += mean_row_bytes(shards, i) /
                     static_cast<std::int64_t>(size_of(shards.schema().fields[i].type)) *
                     static_cast<std::int64_t>(sizeof(std::int64_t));
    const std::int64_t count =
        std::max<std::int64_t>(std::min(most_rows / std::min(among, most_shards),
                                        most_bytes_read / std::max<std::int64_t>(row_bytes, 1)),
                               1);
    std::vector<Rows> rows(shards.shards().size());
    for (const std::int64_t place : choose(among, most_shards, key)) {
        const std::size_t i = filled[static_cast<std::size_t>(place)];
        const Shard& shard = shards.shards()[i];
        const std::int64_t chunk = rows_of_chunk(shards, i);
        rows[i] =
            choose_rows(shard.samples(), std::max<std::int64_t>(chunk, 1), count, mix_keys(key, i));
    }
    return rows;
}

CorpusIdentity identify_corpus(const HostComm& world,
                               const ShardSet& shards,
                               const CorpusIdentity* before) {
    initialize_hdf5();
    const bool again = before != nullptr && has_rows_of(shards, *before);
    const std::vector<Rows> rows = again ? rows_of(*before) : telling_rows(shards);
    CorpusIdentity identity = describe(shards, rows);
    const std::vector<std::int64_t> checksums = checksums_of(world, shards, rows);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (!rows[i].empty())
            identity.shards[i].checksum = checksum_text(static_cast<std::uint64_t>(checksums[i]));
    }
    return identity;
}

std::string difference(const CorpusIdentity& here, const CorpusIdentity& there) {
    if (here.datasets.size() == there.datasets.size()) {
        const auto [own, other] =
            std::mismatch(here.datasets.begin(), here.datasets.end(), there.datasets.begin());
        if (own != here.datasets.end())
            return *own + " here, " + *other + " there";
    } else {
        return join(here.datasets, ", ") + " here, " + join(there.datasets, ", ") + " there";
    }
    if (here.shards.size() != there.shards.size())
        return std::to_string(here.shards.size()) + " shards here, " +
               std::to_string(there.shards.size()) + " there";
    const bool is_copy =
        resized_shards(here, there) == static_cast<std::int64_t>(here.shards.size());
    for (std::size_t i = 0; i < here.shards.size(); ++i) {
        const std::string text = difference(here.shards[i], there.shards[i], is_copy);
        if (!text.empty())
            return text;
    }
    return "";
}

std::int64_t resized_shards(const CorpusIdentity& here, const CorpusIdentity& there) {
    return std::inner_product(here.shards.begin(),
                              here.shards.end(),
                              there.shards.begin(),
                              std::int64_t{0},
                              std::plus<>(),
                              [](const CorpusIdentity::Shard& a, const CorpusIdentity::Shard& b) {
                                  return a.bytes != b.bytes ? 1 : 0;
                              });
}

}  // namespace hetseq
