#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hetseq/data/blocks/block_layout.hpp"
#include "hetseq/data/blocks/block_reader.hpp"
#include "hetseq/data/blocks/block_schedule.hpp"
#include "hetseq/data/corpus.hpp"
#include "hetseq/data/files/shard_set.hpp"

#include "data/blocks/block_cache.hpp"
#include "data/blocks/block_lengths.hpp"
#include "data_context_impl.hpp"

namespace hetseq {

/// Shared with the tasks of the I/O thread, which may outlive the corpus when an exception unwinds.
struct Corpus::Impl : std::enable_shared_from_this<Corpus::Impl> {
    Impl(DataContext::Impl& owner,
         const std::string& name,
         const CorpusSchema& schema,
         const CorpusOptions& options);

    /// Main thread: queues `loads` for the I/O thread, in order.
    void enqueue(const std::vector<BlockLoad>& loads);

    DataContext::Impl& context;  // main thread
    std::shared_ptr<ReaderMeeting> meeting;
    LocatedData located;
    ShardSet shards;
    RaggedExtents extents;
    BlockLayout layout;
    std::vector<double> data_weights;  // as they were given
    GlobalOrder::Geometry geometry;
    BlockSchedule schedule;  // main thread
    BlockCache cache;
    BlockReader reader;           // I/O thread
    std::int64_t max_length = 0;  // positions of a row of a sample that is used; 0: any
    // Main thread. Of the ragged fields that set lengths, and of the others; null: there are none.
    std::unique_ptr<BlockLengths> lengths;
    std::unique_ptr<BlockLengths> other_lengths;
    std::atomic<std::int64_t> blocks_read{0};

private:
    void load(const BlockLoad& load);
    std::unique_ptr<BlockLengths> lengths_of(const std::vector<std::size_t>& fields);
};

}  // namespace hetseq
