#pragma once

#include <cstdint>
#include <deque>
#include <future>
#include <memory>

#include "hetseq/data/blocks/io_thread.hpp"
#include "hetseq/data/files/ragged_extents.hpp"
#include "hetseq/data/order/window_plan.hpp"

namespace hetseq {

/// Lengths of a corpus's rows by block, read by the I/O thread. The blocks used last are kept, as
/// many as two windows and their next ones have.
class BlockLengths final : public LengthSource {
public:
    /// All must outlive it. `kept`: blocks.
    BlockLengths(const ShardSet& shards, IoThread& io, std::int64_t block_length, std::size_t kept);

    std::shared_ptr<const RowLengths> lengths(std::int64_t block) override;
    void read_ahead(std::int64_t block) override;
    /// Closes its files; I/O thread.
    void close() { reader_->close(); }

private:
    using Lengths = std::shared_ptr<const RowLengths>;
    struct Block {
        std::int64_t block = 0;
        std::shared_future<Lengths> lengths;
    };

    Block& find(std::int64_t block);

    IoThread& io_;
    std::int64_t samples_;
    std::int64_t block_length_;
    std::size_t kept_;
    std::shared_ptr<LengthReader> reader_;  // tasks of the I/O thread own it too
    std::deque<Block> blocks_;              // used last first
};

}  // namespace hetseq
