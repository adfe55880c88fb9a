#include "hetseq/data/blocks/block_reader.hpp"

#include <algorithm>
#include <atomic>
#include <utility>
#include <variant>

#include "hetseq/util/activity.hpp"
#include "hetseq/util/error.hpp"
#include "hetseq/util/fault_point.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/mpi/mpi_handle.hpp"
#include "hetseq/data/files/hdf5_types.hpp"

namespace hetseq {

namespace {

constexpr std::size_t most_open_files = 64;
// Independent reads of more than 2 GiB fail in HDF5 1.10, and MPI counts in int.
constexpr std::int64_t most_bytes = std::int64_t{256} << 20;

}  // namespace

struct BlockReader::Piece {
    std::size_t shard = 0;
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
      allowed_{allowed_ranges(shards)} {
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
        opened.datasets.emplace_back(
            HETSEQ_HDF5_TRY(H5Dopen2(opened.file.get(), field.name.c_str(), H5P_DEFAULT)));
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
void BlockReader::check_files(const std::vector<ShardRows>& parts) const {
    for (const ShardRows& part : parts)
        check_unchanged(shards_.shards()[part.shard].path, shards_.shards()[part.shard].stamp);
}

void BlockReader::read(std::int64_t block, std::span<std::byte> slot) {
    const std::int64_t begin = block * layout_.block_length;
    const std::int64_t end = std::min(begin + layout_.block_length, shards_.samples());
    const std::vector<ShardRows> parts = shards_.rows(begin, end);
    // Also where the ranks meet, so that none spins inside of MPI-IO for one that comes late.
    agree_on(*node_, [&] {
        fault_point("io_thread", activity::now().update);
        check_files(parts);
    });
    failure_.reset();
    std::int64_t first_row = 0;
    for (const ShardRows& part : parts) {
        read_rows(part, first_row, slot);
        first_row += part.size();
    }
    // Between the fences every rank has learned that all parts are written.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    agree_on_first(*node_, failure_);
    std::atomic_thread_fence(std::memory_order_seq_cst);
}

void BlockReader::read_rows(const ShardRows& rows,
                            std::int64_t first_row,
                            std::span<std::byte> slot) {
    const OpenShard& shard = open(rows.shard);
    for (std::size_t i = 0; i < layout_.fields.size(); ++i) {
        const FieldLayout& field = layout_.fields[i];
        const StoredType& stored = shards_.shards()[rows.shard].header.datasets[i].type;
        const std::int64_t element = std::max<std::int64_t>(stored.bytes, sizeof(std::int64_t));
        const std::int64_t most_rows = std::max<std::int64_t>(
            most_bytes / (element * std::max<std::int64_t>(field.row_elements, 1)), 1);
        for (std::int64_t begin = rows.begin; begin < rows.end; begin += most_rows) {
            const std::int64_t end = std::min(begin + most_rows, rows.end);
            const std::int64_t row = first_row + begin - rows.begin;
            std::byte* target =
                slot.data() + field.offset + static_cast<std::size_t>(row) * field.row_bytes;
            read_piece(shard, {rows.shard, i, {begin, end}, target});
        }
    }
}

// A failure is kept, not thrown: the other ranks count on this one in their next collective read.
void BlockReader::read_piece(const OpenShard& shard, const Piece& piece) {
    const DatasetHeader& header = shards_.shards()[piece.shard].header.datasets[piece.field];
    const RowRange part =
        share_ == ReadShare::whole
            ? piece.rows
            : chunk_aligned_part(piece.rows, header.chunk_rows, node_->rank(), node_->size());
    try {
        fill(shard, piece, part);
    } catch (...) {
        const std::int64_t place = shards_.shards()[piece.shard].offset + part.begin;
        if (!failure_ || place < failure_->place)
            failure_ = OrderedFailure{place, std::current_exception()};
    }
}

void BlockReader::fill(const OpenShard& shard, const Piece& piece, RowRange part) const {
    const FieldLayout& field = layout_.fields[piece.field];
    const auto skipped = static_cast<std::size_t>(part.begin - piece.rows.begin) * field.row_bytes;
    const std::span<std::byte> target{piece.target + skipped,
                                      static_cast<std::size_t>(part.size()) * field.row_bytes};
    const hid_t dataset = shard.datasets[piece.field].get();
    const StoredType& stored = shards_.shards()[piece.shard].header.datasets[piece.field].type;
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
        throw IoError(shards_.shards()[piece.shard].path + ": reading rows " +
                          std::to_string(part.begin) + " to " + std::to_string(part.end) +
                          " of dataset '" + shards_.schema().fields[piece.field].name + "' failed",
                      hdf5_error_message(),
                      "check or copy the file again");
}

void BlockReader::check(const Piece& piece,
                        RowRange part,
                        std::span<const std::byte> bytes,
                        ElementType type) const {
    const StoredType& stored = shards_.shards()[piece.shard].header.datasets[piece.field].type;
    ValueRange allowed = allowed_[piece.field];
    // Unsigned values of 2^63 and more show as negative ones.
    if (auto* integers = std::get_if<IntegerRange>(&allowed); integers && !stored.is_signed)
        integers->minimum = std::max<std::int64_t>(integers->minimum, 0);
    const auto violation = first_violation(bytes, type, allowed);
    if (!violation)
        return;
    const std::int64_t row =
        part.begin + violation->element / layout_.fields[piece.field].row_elements;
    throw bad_value(shards_.shards()[piece.shard].path,
                    shards_.schema().fields[piece.field],
                    {row, violation->value, stored.is_signed},
                    allowed);
}

}  // namespace hetseq
