#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "hetseq/data/order/epoch_parts.hpp"
#include "hetseq/data/order/keyed_permutation.hpp"

namespace hetseq {

enum class Shuffle { yes, no };

/// Says which sample stands at each position of an epoch. Blocks are permuted, then the samples
/// inside each group of `shuffle_blocks` consecutive permuted blocks. The order depends only on
/// (samples, block length, shuffle_blocks, seed, epoch) and takes O(1) memory and time. The ragged
/// last block keeps its length wherever it lands. Without shuffling, position = sample and a group
/// is one block. Where sets of samples are taken more or less often (`EpochParts`), the parts of
/// blocks that the epoch takes are permuted and mixed instead of the blocks; then it takes memory
/// and time in proportion to them.
class GlobalOrder {
public:
    struct Geometry {
        std::int64_t samples = 0;       // >= 1
        std::int64_t block_length = 1;  // samples, >= 1
        std::int64_t shuffle_blocks = 8;
        /// Each sample is in one of them. Null: an epoch takes every sample once.
        std::shared_ptr<const std::vector<SampleSet>> sets = nullptr;

        std::int64_t blocks() const noexcept { return (samples + block_length - 1) / block_length; }
        std::int64_t epoch_samples() const noexcept;
        /// At least as many as any shuffled epoch has.
        std::int64_t most_groups() const;
        friend bool operator==(const Geometry&, const Geometry&) = default;
    };

    GlobalOrder(const Geometry& geometry,
                std::uint64_t seed,
                std::int64_t epoch,
                Shuffle shuffle = Shuffle::yes);

    std::int64_t size() const noexcept { return parts_ ? parts_->samples() : geometry_.samples; }
    std::int64_t groups() const noexcept;
    /// The sample at `position`, in [0, size()).
    std::int64_t operator()(std::int64_t position) const;
    /// The group of blocks that `position` is drawn from.
    std::int64_t group_of(std::int64_t position) const;
    /// [begin, end) of the positions that `group` fills.
    std::int64_t group_begin(std::int64_t group) const;
    std::int64_t group_end(std::int64_t group) const { return group_begin(group + 1); }
    /// The blocks that `group` mixes, each once.
    std::vector<std::int64_t> group_blocks(std::int64_t group) const;
    /// What it takes of them, which may be some parts of a block.
    std::vector<BlockRange> group_parts(std::int64_t group) const;
    /// The last group at or before `group` that mixes `block`, otherwise the first one behind it.
    /// The epoch takes some of the block.
    std::int64_t group_of_block(std::int64_t block, std::int64_t group) const;
    /// The first group at or behind `group` that mixes `block`.
    std::optional<std::int64_t> next_group_of_block(std::int64_t block, std::int64_t group) const;

private:
    std::int64_t slot_of(std::int64_t block) const;
    std::int64_t block_at(std::int64_t slot) const;
    std::int64_t sample_at(std::int64_t slot_position) const;
    std::int64_t group_length() const noexcept;  // of a group without the ragged block [samples]

    Geometry geometry_;
    std::uint64_t key_ = 0;
    Shuffle shuffle_ = Shuffle::yes;
    KeyedPermutation blocks_;
    std::int64_t ragged_slot_ = 0;  // where the last block lands among the permuted blocks
    std::int64_t missing_ = 0;      // samples the last block lacks to be a full one
    std::shared_ptr<const EpochParts> parts_;  // null: every sample comes once
};

}  // namespace hetseq
