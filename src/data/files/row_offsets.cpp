#include "hetseq/data/files/row_offsets.hpp"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "hetseq/data/hdf5/hdf5_dataset.hpp"
#include "hetseq/data/hdf5/hdf5_types.hpp"

namespace hetseq {

namespace {

constexpr std::int64_t most_read = std::int64_t{1} << 25;  // offsets at a time; MPI counts in int
constexpr const char* prepare_offsets_anew = "prepare the file anew";

struct RaggedField {
    const Shard& shard;
    const FieldSchema& schema;
    std::int64_t values = 0;
    bool is_signed = true;  // of the offsets as stored

    std::string offsets_place() const {
        return shard.path + ": dataset '" + offsets_name(schema.name) + "'";
    }
    std::string row_place(std::int64_t row) const {
        return shard.path + ": dataset '" + schema.name + "', row " + std::to_string(row);
    }
    std::string text(std::int64_t offset) const {
        return is_signed ? std::to_string(offset)
                         : std::to_string(static_cast<std::uint64_t>(offset));
    }
};

RaggedField ragged_field(const ShardSet& shards, std::size_t shard, std::size_t field) {
    const Shard& owner = shards.shards()[shard];
    const DatasetHeader& header = owner.header.datasets[field];
    return {owner, shards.schema().fields[field], header.values, header.offsets.type.is_signed};
}

// The length of a row. If the offsets fall, it is larger than any row may be.
std::uint64_t length_at(std::span<const std::int64_t> offsets, std::size_t row) {
    return static_cast<std::uint64_t>(offsets[row + 1]) - static_cast<std::uint64_t>(offsets[row]);
}

// True if all rows lie within the values and none is too long. It is one pass without branches.
bool are_within(std::span<const std::int64_t> offsets, const RaggedField& field) {
    std::uint64_t longest = 0;
    for (std::size_t row = 0; row + 1 < offsets.size(); ++row)
        longest = std::max(longest, length_at(offsets, row));
    return offsets.front() >= 0 && offsets.front() <= field.values &&
           offsets.back() <= field.values && longest <= static_cast<std::uint64_t>(most_row_values);
}

BadRow outside(const RaggedField& field, std::int64_t row, std::int64_t offset) {
    return {row,
            BadData(field.offsets_place() + " runs past the end at row " + std::to_string(row),
                    "found " + field.text(offset) + ", and '" + field.schema.name + "' holds " +
                        std::to_string(field.values) + " values",
                    prepare_offsets_anew)};
}

BadRow falling(const RaggedField& field, std::int64_t row, std::int64_t begin, std::int64_t end) {
    return {row,
            BadData(field.offsets_place() + " falls behind row " + std::to_string(row),
                    "found " + field.text(end) + " after " + field.text(begin) +
                        ", expected where each row begins, one after the other",
                    prepare_offsets_anew)};
}

BadRow too_long(const RaggedField& field, std::int64_t row, std::int64_t length) {
    return {row,
            BadData(field.row_place(row) + " is too long",
                    "found " + std::to_string(length) + " values, expected at most " +
                        std::to_string(most_row_values),
                    "prepare shorter sequences")};
}

// The first row, from `first_row` on, that leaves the values, falls or is too long.
std::optional<BadRow> first_row_outside(const RaggedField& field,
                                        std::int64_t first_row,
                                        std::span<const std::int64_t> offsets) {
    if (are_within(offsets, field))
        return std::nullopt;
    const auto lies_outside = [&](std::int64_t offset) {
        return offset > field.values || (offset < 0 && !field.is_signed);
    };
    if (lies_outside(offsets.front()))
        return outside(field, first_row, offsets.front());
    if (offsets.front() < 0)
        return falling(field, first_row - 1, 0, offsets.front());
    for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
        const std::int64_t row = first_row + static_cast<std::int64_t>(i);
        if (lies_outside(offsets[i + 1]))
            return outside(field, row, offsets[i + 1]);
        if (offsets[i + 1] < offsets[i])
            return falling(field, row, offsets[i], offsets[i + 1]);
        if (offsets[i + 1] - offsets[i] > most_row_values)
            return too_long(field, row, offsets[i + 1] - offsets[i]);
    }
    return std::nullopt;
}

std::optional<BadRow> first_bad_offset(const RaggedField& field,
                                       const ShardRows& rows,
                                       std::span<const std::int64_t> offsets) {
    if (rows.begin == 0 && offsets.front() != 0)
        return BadRow{0,
                      BadData(field.offsets_place() + " does not begin at 0",
                              "found " + field.text(offsets.front()),
                              prepare_offsets_anew)};
    if (auto bad = first_row_outside(field, rows.begin, offsets))
        return bad;
    if (rows.end == field.shard.samples() && offsets.back() != field.values)
        return BadRow{
            rows.end,
            BadData(field.offsets_place() + " does not end at the number of values",
                    "found " + field.text(offsets.back()) + ", expected " +
                        std::to_string(field.values) + " as in '" + field.schema.name + "'",
                    prepare_offsets_anew)};
    return std::nullopt;
}

// The first row that ends inside of a position.
std::optional<BadRow> first_broken_row(const RaggedField& field,
                                       std::int64_t first_row,
                                       std::span<const std::int64_t> offsets) {
    const auto whole = static_cast<std::uint64_t>(field.schema.position_values);
    if (whole == 1)
        return std::nullopt;
    for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
        if (length_at(offsets, i) % whole == 0)
            continue;
        const std::int64_t row = first_row + static_cast<std::int64_t>(i);
        return BadRow{row,
                      BadData(field.row_place(row) + " does not fit the shape of its rows",
                              "found " + std::to_string(length_at(offsets, i)) +
                                  " values, expected a multiple of " + std::to_string(whole),
                              prepare_offsets_anew)};
    }
    return std::nullopt;
}

// The first row that is shorter than any may be.
std::optional<BadRow> first_short_row(const RaggedField& field,
                                      std::int64_t first_row,
                                      std::span<const std::int64_t> offsets) {
    const std::int64_t least = field.schema.min_row_length * field.schema.position_values;
    for (std::size_t i = 0; least > 0 && i + 1 < offsets.size(); ++i) {
        if (length_at(offsets, i) >= static_cast<std::uint64_t>(least))
            continue;
        const std::int64_t row = first_row + static_cast<std::int64_t>(i);
        return BadRow{row,
                      BadData(field.row_place(row) + " is too short",
                              "found " + std::to_string(length_at(offsets, i)) +
                                  " values, expected at least " + std::to_string(least),
                              "leave the sample out")};
    }
    return std::nullopt;
}

// The first row of `one` that is not as long as that of `other`.
std::optional<BadRow> first_unlike_row(const RaggedField& field,
                                       const FieldSchema& other_field,
                                       std::int64_t first_row,
                                       std::span<const std::int64_t> one,
                                       std::span<const std::int64_t> other) {
    for (std::size_t i = 0; i + 1 < one.size(); ++i) {
        const std::int64_t found = (one[i + 1] - one[i]) / field.schema.position_values;
        const std::int64_t expected = (other[i + 1] - other[i]) / other_field.position_values;
        if (found == expected)
            continue;
        const std::int64_t row = first_row + static_cast<std::int64_t>(i);
        return BadRow{
            row,
            BadData(field.row_place(row) + " has another length than in '" + other_field.name + "'",
                    "found " + std::to_string(found) +
                        (field.schema.position_values == 1 ? " values" : " positions") +
                        ", expected " + std::to_string(expected),
                    prepare_offsets_anew)};
    }
    return std::nullopt;
}

void keep_first(std::optional<BadRow>& first, std::optional<BadRow> found) {
    if (found && (!first || found->row < first->row))
        first.emplace(std::move(*found));
}

}  // namespace

std::optional<BadRow> first_bad_row(const ShardSet& shards,
                                    const ShardRows& rows,
                                    const RowOffsets& offsets) {
    const std::vector<std::size_t>& ragged = shards.ragged_fields();
    std::optional<BadRow> first;
    for (std::size_t k = 0; k < ragged.size(); ++k)
        keep_first(first,
                   first_bad_offset(ragged_field(shards, rows.shard, ragged[k]), rows, offsets[k]));
    for (std::size_t k = 0; k < ragged.size(); ++k) {
        const auto good = static_cast<std::size_t>(
            (first ? std::min(first->row, rows.end) : rows.end) - rows.begin);
        const RaggedField field = ragged_field(shards, rows.shard, ragged[k]);
        const auto known = std::span{offsets[k]}.first(good + 1);
        keep_first(first, first_broken_row(field, rows.begin, known));
        keep_first(first, first_short_row(field, rows.begin, known));
    }
    // Only the rows before the first bad one can be compared.
    const std::int64_t good = (first ? std::min(first->row, rows.end) : rows.end) - rows.begin;
    for (std::size_t k = 0; k < ragged.size(); ++k) {
        const RaggedField field = ragged_field(shards, rows.shard, ragged[k]);
        for (std::size_t j = 0; j < ragged.size(); ++j) {
            const FieldSchema& other = shards.schema().fields[ragged[j]];
            if (field.schema.same_row_shape_as != other.name)
                continue;
            const auto count = static_cast<std::size_t>(good + 1);
            keep_first(first,
                       first_unlike_row(field,
                                        other,
                                        rows.begin,
                                        std::span{offsets[k]}.first(count),
                                        std::span{offsets[j]}.first(count)));
        }
    }
    return first;
}

std::vector<std::int64_t> read_offsets(const ShardSet& shards,
                                       const ShardRows& rows,
                                       std::size_t field,
                                       hid_t dataset) {
    const Shard& shard = shards.shards()[rows.shard];
    const Hdf5Type type =
        memory_type(shard.header.datasets[field].offsets.type, ElementType::int64);
    const Hdf5Space space{HETSEQ_HDF5_TRY(H5Dget_space(dataset))};
    std::vector<std::int64_t> offsets(static_cast<std::size_t>(rows.size() + 1));
    for (std::int64_t begin = rows.begin; begin <= rows.end; begin += most_read) {
        const auto start = static_cast<hsize_t>(begin);
        const auto count = static_cast<hsize_t>(std::min(most_read, rows.end + 1 - begin));
        const Hdf5Space memory{HETSEQ_HDF5_TRY(H5Screate_simple(1, &count, nullptr))};
        HETSEQ_HDF5_TRY(
            H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, &start, nullptr, &count, nullptr));
        std::int64_t* target = offsets.data() + (begin - rows.begin);
        if (H5Dread(dataset, type.get(), memory.get(), space.get(), H5P_DEFAULT, target) < 0)
            throw IoError(shard.path + ": reading rows " + std::to_string(rows.begin) + " to " +
                              std::to_string(rows.end) + " of dataset '" +
                              offsets_name(shards.schema().fields[field].name) + "' failed",
                          hdf5_error_message(),
                          "check or copy the file again");
    }
    return offsets;
}

OffsetsFile::OffsetsFile(const ShardSet& shards, std::size_t shard)
    : shards_{shards}, shard_{shard} {
    const Shard& opened = shards.shards()[shard];
    const Hdf5Properties access{HETSEQ_HDF5_TRY(H5Pcreate(H5P_FILE_ACCESS))};
    HETSEQ_HDF5_TRY(H5Pset_file_locking(access.get(), 0, 1));
    file_ = Hdf5File{H5Fopen(opened.path.c_str(), H5F_ACC_RDONLY, access.get())};
    if (!file_)
        throw IoError("cannot open " + opened.path, hdf5_error_message(), "");
    for (const std::size_t field : shards.ragged_fields()) {
        const OffsetsHeader& header = opened.header.datasets[field].offsets;
        // If a chunk did not fit, every read would decompress it again.
        constexpr std::int64_t usual_bytes = std::int64_t{1} << 20;
        constexpr std::size_t places = 521;  // HDF5's own choice
        const std::int64_t chunk_bytes =
            header.chunk_rows * static_cast<std::int64_t>(sizeof(std::int64_t));
        const Hdf5Properties cache{HETSEQ_HDF5_TRY(H5Pcreate(H5P_DATASET_ACCESS))};
        HETSEQ_HDF5_TRY(
            H5Pset_chunk_cache(cache.get(),
                               places,
                               static_cast<std::size_t>(std::max(usual_bytes, chunk_bytes)),
                               /*preemption=*/1.0));
        const std::string name = offsets_name(shards.schema().fields[field].name);
        datasets_.push_back(open_hdf5_dataset(file_.get(), opened.path, name, cache.get()));
    }
}

RowOffsets OffsetsFile::read_any(std::int64_t begin, std::int64_t end) const {
    RowOffsets offsets;
    for (std::size_t k = 0; k < datasets_.size(); ++k)
        offsets.push_back(read_offsets(
            shards_, {shard_, begin, end}, shards_.ragged_fields()[k], datasets_[k].get()));
    return offsets;
}

RowOffsets OffsetsFile::read(std::int64_t begin, std::int64_t end) const {
    RowOffsets offsets = read_any(begin, end);
    if (const auto bad = first_bad_row(shards_, {shard_, begin, end}, offsets))
        throw bad->error;
    return offsets;
}

}  // namespace hetseq
