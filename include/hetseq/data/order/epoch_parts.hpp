#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace hetseq {

/// Samples [begin, end) of the corpus.
struct SampleRange {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::int64_t size() const noexcept { return end - begin; }
    friend bool operator==(const SampleRange&, const SampleRange&) = default;
};

/// Samples that an epoch takes more or less often than others.
struct SampleSet {
    std::vector<SampleRange> ranges;    // ascending, apart from each other; some samples
    std::int64_t samples_of_epoch = 1;  // how many an epoch takes, repeats counted; >= 1

    std::int64_t samples() const noexcept;
    friend bool operator==(const SampleSet&, const SampleSet&) = default;
};

/// The part of a block that an epoch takes at once.
struct BlockRange {
    std::int64_t block = 0;
    SampleRange samples;
    friend bool operator==(const BlockRange&, const BlockRange&) = default;
};

/// The parts of blocks that `ranges` are made of, in order.
std::vector<BlockRange> block_ranges(std::span<const SampleRange> ranges,
                                     std::int64_t block_length);

/// At least as many as any epoch has.
std::int64_t most_parts(std::span<const SampleSet> sets, std::int64_t block_length);

/// The parts of blocks that an epoch takes from sets, in the order in which it does. Of a set of n
/// samples that gives q, each sample is taken floor(q / n) times. The other q mod n are a slice of
/// the set's blocks in an order that the seed and the set's place decide; the next epoch's slice
/// begins where this one ends, and behind the last block comes the first. So in any run of epochs
/// the times that two samples of a set are taken differ by at most one. All parts are then
/// permuted by a key of the epoch. Takes memory and time in proportion to the parts.
class EpochParts {
public:
    /// `group_parts` >= 1: parts that are mixed.
    EpochParts(std::span<const SampleSet> sets,
               std::int64_t block_length,
               std::int64_t group_parts,
               std::uint64_t seed,
               std::int64_t epoch,
               std::uint64_t epoch_key);

    std::int64_t samples() const noexcept { return begins_.back(); }  // of the epoch
    std::int64_t groups() const noexcept;
    std::int64_t group_of(std::int64_t position) const;
    std::int64_t group_begin(std::int64_t group) const;
    /// The sample at `position` of the parts end to end.
    std::int64_t sample_at(std::int64_t position) const;
    std::span<const BlockRange> group_parts(std::int64_t group) const;
    /// The first group at or behind `group` that mixes `block`.
    std::optional<std::int64_t> next_group(std::int64_t block, std::int64_t group) const;
    /// The last group at or before `group` that mixes `block`.
    std::optional<std::int64_t> last_group(std::int64_t block, std::int64_t group) const;

private:
    std::int64_t first_part(std::int64_t group) const;
    std::int64_t part_of(std::int64_t position) const;

    std::int64_t group_parts_ = 1;
    std::vector<BlockRange> parts_;
    std::vector<std::int64_t> begins_;  // positions; one more than there are parts
    std::vector<std::pair<std::int64_t, std::int64_t>> uses_;  // (block, group), ascending
};

}  // namespace hetseq
