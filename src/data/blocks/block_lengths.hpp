#pragma once

#include <cstdint>
#include <deque>
#include <future>
#include <memory>
#include <vector>

#include "hetseq/data/blocks/io_thread.hpp"
#include "hetseq/data/files/ragged_extents.hpp"
#include "hetseq/data/order/window_plan.hpp"

namespace hetseq {

/// The lengths of a corpus's rows by block; the I/O thread reads them. The most recently used
/// blocks are kept.
class BlockLengths final : public LengthSource {
public:
    using Lengths = std::shared_ptr<const RowLengths>;

    /// `shards` and `io` must outlive it. `fields`: ragged ones, as places in the schema. `kept`:
    /// the number of blocks that are kept.
    BlockLengths(const ShardSet& shards,
                 std::vector<std::size_t> fields,
                 IoThread& io,
                 std::int64_t block_length,
                 std::size_t kept);

    std::shared_ptr<const RowLengths> lengths(std::int64_t block) override;
    void read_ahead(std::int64_t block) override;
    /// The same as `lengths`, for another thread to wait for.
    std::shared_future<Lengths> ask(std::int64_t block);
    /// I/O thread: closes the files.
    void close() { reader_->close(); }

private:
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
    std::deque<Block> blocks_;              // most recently used first
};

}  // namespace hetseq
