#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hetseq/data/blocks/block_layout.hpp"
#include "hetseq/data/blocks/io_mode.hpp"
#include "hetseq/data/files/content_check.hpp"
#include "hetseq/data/files/first_failure.hpp"
#include "hetseq/data/files/shard_set.hpp"
#include "hetseq/data/hdf5/hdf5.hpp"

namespace hetseq {

class HostComm;
struct BlockPart;

/// How the ranks of a host read a block: each rank reads a `part` of it, or each the `whole`.
enum class ReadShare { part, whole };

/// Reads blocks from shards and checks what they contain. Only the I/O thread uses it. Reading is
/// collective over the ranks of the host.
class BlockReader {
public:
    BlockReader(const ShardSet& shards,
                const BlockLayout& layout,
                std::shared_ptr<const HostComm> node,
                IoMode mode,
                ReadShare share);

    /// Collective. Fills `slot` with block `block`. When it returns every rank's part is there;
    /// otherwise all ranks throw BadData or IoError that names file, dataset and row.
    void read(std::int64_t block, std::span<std::byte> slot);
    /// Collective. Closes all files.
    void close();

private:
    struct OpenShard {
        std::size_t index = 0;
        Hdf5File file;
        std::vector<Hdf5Dataset> datasets;  // by field; closed before the file
        std::vector<Hdf5Dataset> offsets;   // by ragged field
    };
    struct Piece;  // rows of one field (values of a ragged one) on their way from file to slot

    OpenShard& open(std::size_t shard);
    OpenShard open_files(std::size_t shard) const;
    void read_part(BlockPart& part, std::span<std::byte> slot);
    void read_row_offsets(const OpenShard& shard, BlockPart& part, std::span<std::byte> slot);
    void read_field(const OpenShard& shard,
                    const BlockPart& part,
                    std::size_t field,
                    std::span<std::byte> slot);
    void read_piece(const OpenShard& shard, const Piece& piece);
    void fill(const OpenShard& shard, const Piece& piece, RowRange part) const;
    void check_files(const std::vector<BlockPart>& parts) const;
    RowRange own_part(RowRange rows, std::int64_t chunk_rows) const;
    void keep_failure(std::int64_t place);
    std::int64_t row_of(const Piece& piece, std::int64_t element) const;
    void transfer(hid_t dataset, const Piece& piece, RowRange part, hid_t type, void* target) const;
    void check(const Piece& piece,
               RowRange part,
               std::span<const std::byte> bytes,
               ElementType type) const;
    void check_below_lengths(const Piece& piece,
                             RowRange part,
                             std::span<const std::byte> bytes,
                             ElementType type,
                             const ValueRange& allowed) const;

    const ShardSet& shards_;
    const BlockLayout& layout_;
    std::shared_ptr<const HostComm> node_;
    bool mpi_io_;
    ReadShare share_;
    Hdf5Properties access_;
    Hdf5Properties transfer_;
    std::vector<ValueRange> allowed_;                 // by field
    std::vector<std::optional<std::size_t>> ragged_;  // by field: its place among the ragged ones
    // By field: if the row lengths of a ragged field bound its values, that field's place among the
    // ragged ones.
    std::vector<std::optional<std::size_t>> bounded_by_;
    std::list<OpenShard> open_;              // most recently used first
    std::optional<OrderedFailure> failure_;  // this rank's first in the current block
};

}  // namespace hetseq
