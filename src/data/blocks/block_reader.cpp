#include "hetseq/data/blocks/block_reader.hpp"

#include <algorithm>
#include <atomic>
#include <utility>
#include <variant>

#include "hetseq/util/error.hpp"
#include "hetseq/util/process/activity.hpp"
#include "hetseq/util/process/fault_point.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/mpi/mpi_handle.hpp"
#include "hetseq/data/hdf5/hdf5_dataset.hpp"
#include "hetseq/data/hdf5/hdf5_types.hpp"

#include "block_part.hpp"

namespace hetseq {

namespace {

constexpr std::size_t most_open_files = 64;
// Independent reads of more than 2 GiB fail in HDF5 1.10, and MPI counts in int.
constexpr std::int64_t most_bytes = std::int64_t{256} << 20;

// For each field: if `name_of` gives the name of a ragged field, that field's place among the
// ragged ones.
template <class NameOf>
std::vector<std::optional<std::size_t>> ragged_places(const ShardSet& shards, NameOf&& name_of) {
    std::vector<std::optional<std::size_t>> places;
    for (const FieldSchema& field : shards.schema().fields) {
        std::optional<std::size_t> place;
        for (std::size_t k = 0; k < shards.ragged_fields().size(); ++k) {
            if (shards.schema().fields[shards.ragged_fields()[k]].name == name_of(field))
                place = k;
        }
        places.push_back(place);
    }
    return places;
}

}  // namespace

struct BlockReader::Piece {
    const BlockPart& part;
    std::size_t field = 0;
    RowRange rows;                // of the shard
    std::byte* target = nullptr;  // where the first of them goes
};

BlockReader::BlockReader(const ShardSet& shards,
                         const BlockLayout& layout,
                         std::shared_ptr<const HostComm> node,
                         IoMode mode,
                         ReadShare share)
    : shards_{shards},
      layout_{layout},
      node_{std::move(node)},
      mpi_io_{mode != IoMode::serial && node_->size() > 1},
      share_{share},
      access_{HETSEQ_HDF5_TRY(H5Pcreate(H5P_FILE_ACCESS))},
      transfer_{HETSEQ_HDF5_TRY(H5Pcreate(H5P_DATASET_XFER))},
      allowed_{allowed_ranges(shards)},
      ragged_{ragged_places(shards, [](const FieldSchema& field) { return field.name; })},
      bounded_by_{ragged_places(
          shards, [](const FieldSchema& field) { return field.below_row_length_of; })} {
    HETSEQ_HDF5_TRY(H5Pset_file_locking(access_.get(), 0, 1));
    if (mpi_io_)
        HETSEQ_HDF5_TRY(H5Pset_fapl_mpio(access_.get(), mpi_handle(*node_), MPI_INFO_NULL));
    if (mpi_io_ && mode == IoMode::collective)
        HETSEQ_HDF5_TRY(H5Pset_dxpl_mpio(transfer_.get(), H5FD_MPIO_COLLECTIVE));
}

void BlockReader::close() {
    open_.clear();
}

BlockReader::OpenShard BlockReader::open_files(std::size_t shard) const {
    OpenShard opened;
    opened.index = shard;
    const std::string& path = shards_.shards()[shard].path;
    opened.file = Hdf5File{H5Fopen(path.c_str(), H5F_ACC_RDONLY, access_.get())};
    if (!opened.file)
        throw IoError("cannot open " + path, hdf5_error_message(), "");
    for (const FieldSchema& field : shards_.schema().fields)
        opened.datasets.push_back(open_hdf5_dataset(opened.file.get(), path, field.name));
    for (const std::size_t field : shards_.ragged_fields()) {
        const std::string name = offsets_name(shards_.schema().fields[field].name);
        opened.offsets.push_back(open_hdf5_dataset(opened.file.get(), path, name));
    }
    return opened;
}

BlockReader::OpenShard& BlockReader::open(std::size_t shard) {
    const auto found = std::find_if(
        open_.begin(), open_.end(), [&](const OpenShard& open) { return open.index == shard; });
    if (found != open_.end()) {
        open_.splice(open_.begin(), open_, found);
        return open_.front();
    }
    if (open_.size() >= most_open_files)
        open_.pop_back();
    open_.push_front(agree_on(*node_, [&] { return open_files(shard); }));
    return open_.front();
}

// Checks the files for problems that this rank alone may find.
void BlockReader::check_files(const std::vector<BlockPart>& parts) const {
    for (const BlockPart& part : parts) {
        const Shard& shard = shards_.shards()[part.rows.shard];
        check_unchanged(shard.path, shard.stamp);
    }
}

void BlockReader::read(std::int64_t block, std::span<std::byte> slot) {
    std::vector<BlockPart> parts = parts_of_block(shards_, layout_, block);
    // The ranks also meet here, so that no rank spins inside MPI-IO while it waits for a late one.
    agree_on(*node_, [&] {
        fault_point("io_thread", activity::now().update);
        check_files(parts);
    });
    failure_.reset();
    for (BlockPart& part : parts)
        read_part(part, slot);
    // Between the fences every rank has learned that all parts are written.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    agree_on_first(*node_, failure_);
    std::atomic_thread_fence(std::memory_order_seq_cst);
}

void BlockReader::read_part(BlockPart& part, std::span<std::byte> slot) {
    const OpenShard& shard = open(part.rows.shard);
    if (!shards_.ragged_fields().empty())
        read_row_offsets(shard, part, slot);
    for (std::size_t i = 0; i < layout_.fields.size(); ++i)
        read_field(shard, part, i, slot);
}

// Every rank reads all offsets of the part by itself, since it checks its values with them; they
// are a small part of the bytes. Each rank writes some of them to the slot.
void BlockReader::read_row_offsets(const OpenShard& shard,
                                   BlockPart& part,
                                   std::span<std::byte> slot) {
    try {
        RowOffsets offsets;
        for (std::size_t k = 0; k < shard.offsets.size(); ++k)
            offsets.push_back(read_offsets(
                shards_, part.rows, shards_.ragged_fields()[k], shard.offsets[k].get()));
        check_offsets(shards_, part, offsets);
        part.offsets = std::move(offsets);
    } catch (...) {
        keep_failure(shards_.shards()[part.rows.shard].offset + part.rows.begin);
        return;
    }
    const RowRange own = own_part({part.rows.begin, part.rows.end}, 0);
    for (std::size_t k = 0; k < part.offsets.size(); ++k) {
        const FieldLayout& field = layout_.fields[shards_.ragged_fields()[k]];
        auto* target = reinterpret_cast<std::int64_t*>(slot.data() + field.row_offsets);
        const auto length = static_cast<std::size_t>(layout_.block_length + 1);
        write_row_offsets(part, own, k, {target, length});
    }
}

void BlockReader::read_field(const OpenShard& shard,
                             const BlockPart& part,
                             std::size_t field,
                             std::span<std::byte> slot) {
    const FieldLayout& layout = layout_.fields[field];
    const StoredType& stored = shards_.shards()[part.rows.shard].header.datasets[field].type;
    const std::int64_t element = std::max<std::int64_t>(stored.bytes, sizeof(std::int64_t));
    const std::int64_t most_rows = std::max<std::int64_t>(
        most_bytes / (element * std::max<std::int64_t>(layout.row_elements, 1)), 1);
    const auto ragged = ragged_[field];
    const RowRange rows = ragged ? part.values[*ragged] : RowRange{part.rows.begin, part.rows.end};
    const std::int64_t first = ragged ? part.first_value[*ragged] : part.first_row;
    for (std::int64_t begin = rows.begin; begin < rows.end; begin += most_rows) {
        const std::int64_t row = first + begin - rows.begin;
        std::byte* target =
            slot.data() + layout.offset + static_cast<std::size_t>(row) * layout.row_bytes;
        read_piece(shard, {part, field, {begin, std::min(begin + most_rows, rows.end)}, target});
    }
}

RowRange BlockReader::own_part(RowRange rows, std::int64_t chunk_rows) const {
    return share_ == ReadShare::whole
               ? rows
               : chunk_aligned_part(rows, chunk_rows, node_->rank(), node_->size());
}

// A failure is kept and not thrown, since the other ranks need this one in their next collective
// read. This is called where a failure was caught; `place` is a sample of the corpus.
void BlockReader::keep_failure(std::int64_t place) {
    if (!failure_ || place < failure_->place)
        failure_ = OrderedFailure{place, std::current_exception()};
}

void BlockReader::read_piece(const OpenShard& shard, const Piece& piece) {
    const Shard& source = shards_.shards()[piece.part.rows.shard];
    const RowRange own = own_part(piece.rows, source.header.datasets[piece.field].chunk_rows);
    try {
        fill(shard, piece, own);
    } catch (...) {
        keep_failure(source.offset + row_of(piece, own.begin));
    }
}

// The row of the shard that holds row `row` of a piece's dataset. If the field is ragged, a row of
// the dataset is one value.
std::int64_t BlockReader::row_of(const Piece& piece, std::int64_t row) const {
    const auto ragged = ragged_[piece.field];
    if (!ragged)
        return row;
    return piece.part.has_offsets() ? piece.part.row_of(*ragged, row) : piece.part.rows.begin;
}

void BlockReader::fill(const OpenShard& shard, const Piece& piece, RowRange part) const {
    const FieldLayout& field = layout_.fields[piece.field];
    const auto skipped = static_cast<std::size_t>(part.begin - piece.rows.begin) * field.row_bytes;
    const std::span<std::byte> target{piece.target + skipped,
                                      static_cast<std::size_t>(part.size()) * field.row_bytes};
    const hid_t dataset = shard.datasets[piece.field].get();
    const StoredType& stored =
        shards_.shards()[piece.part.rows.shard].header.datasets[piece.field].type;
    const ElementType checked = checked_type(stored, field.type);
    const Hdf5Type type = memory_type(stored, checked);
    if (size_of(checked) > size_of(field.type)) {
        std::vector<std::byte> wide(static_cast<std::size_t>(part.size() * field.row_elements) *
                                    size_of(checked));
        transfer(dataset, piece, part, type.get(), wide.data());
        check(piece, part, wide, checked);
        narrow(wide, field.type, target);
    } else {
        transfer(dataset, piece, part, type.get(), target.data());
        check(piece, part, target, checked);
    }
}

void BlockReader::transfer(
    hid_t dataset, const Piece& piece, RowRange part, hid_t type, void* target) const {
    const Hdf5Space file{HETSEQ_HDF5_TRY(H5Dget_space(dataset))};
    std::vector<hsize_t> start{static_cast<hsize_t>(part.begin)};
    std::vector<hsize_t> count{static_cast<hsize_t>(part.size())};
    for (const std::int64_t length : shards_.row_shape(piece.field)) {
        start.push_back(0);
        count.push_back(static_cast<hsize_t>(length));
    }
    const auto rank = static_cast<int>(count.size());
    const Hdf5Space memory{HETSEQ_HDF5_TRY(H5Screate_simple(rank, count.data(), nullptr))};
    if (part.size() > 0) {
        HETSEQ_HDF5_TRY(H5Sselect_hyperslab(
            file.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr));
    } else {
        HETSEQ_HDF5_TRY(H5Sselect_none(file.get()));
        HETSEQ_HDF5_TRY(H5Sselect_none(memory.get()));
    }
    if (H5Dread(dataset, type, memory.get(), file.get(), transfer_.get(), target) < 0)
        throw IoError(shards_.shards()[piece.part.rows.shard].path + ": reading " +
                          (ragged_[piece.field] ? "values " : "rows ") +
                          std::to_string(part.begin) + " to " + std::to_string(part.end) +
                          " of dataset '" + shards_.schema().fields[piece.field].name + "' failed",
                      hdf5_error_message(),
                      "check or copy the file again");
}

void BlockReader::check(const Piece& piece,
                        RowRange part,
                        std::span<const std::byte> bytes,
                        ElementType type) const {
    if (!shards_.ragged_fields().empty() && !piece.part.has_offsets())
        return;  // the offsets failed, which comes before any of the values
    const Shard& shard = shards_.shards()[piece.part.rows.shard];
    const StoredType& stored = shard.header.datasets[piece.field].type;
    ValueRange allowed = allowed_[piece.field];
    // Unsigned values of 2^63 and more show as negative ones.
    if (auto* integers = std::get_if<IntegerRange>(&allowed); integers && !stored.is_signed)
        integers->minimum = std::max<std::int64_t>(integers->minimum, 0);
    if (const auto violation = first_violation(bytes, type, allowed)) {
        const std::int64_t row =
            part.begin + violation->element / layout_.fields[piece.field].row_elements;
        throw bad_value(shard.path,
                        shards_.schema().fields[piece.field],
                        {row_of(piece, row), violation->value, stored.is_signed},
                        allowed);
    }
    if (bounded_by_[piece.field])
        check_below_lengths(piece, part, bytes, type, allowed);
}

// Checks each row's values against the length of the row that bounds them.
void BlockReader::check_below_lengths(const Piece& piece,
                                      RowRange part,
                                      std::span<const std::byte> bytes,
                                      ElementType type,
                                      const ValueRange& allowed) const {
    const BlockPart& rows = piece.part;
    const auto ragged = ragged_[piece.field];
    const std::size_t row_bytes =
        size_of(type) * static_cast<std::size_t>(layout_.fields[piece.field].row_elements);
    std::int64_t begin = part.begin;
    while (begin < part.end) {
        const std::int64_t row = row_of(piece, begin);
        const auto place = static_cast<std::size_t>(row - rows.rows.begin);
        const std::int64_t end =
            ragged ? std::min(rows.offsets[*ragged][place + 1], part.end) : begin + 1;
        const ValueRange below =
            below_length(allowed, rows.length_of(*bounded_by_[piece.field], row));
        const auto values = bytes.subspan(static_cast<std::size_t>(begin - part.begin) * row_bytes,
                                          static_cast<std::size_t>(end - begin) * row_bytes);
        if (const auto violation = first_violation(values, type, below))
            throw bad_value(shards_.shards()[rows.rows.shard].path,
                            shards_.schema().fields[piece.field],
                            {row, violation->value},
                            below);
        begin = end;
    }
}

}  // namespace hetseq
