#include "hetseq/data/order/global_order.hpp"

#include <algorithm>
#include <span>
#include <unordered_set>

#include "hetseq/util/error.hpp"

namespace hetseq {

namespace {

const GlobalOrder::Geometry& checked(const GlobalOrder::Geometry& geometry) {
    HETSEQ_ASSERT(geometry.samples >= 1);
    HETSEQ_ASSERT(geometry.block_length >= 1);
    HETSEQ_ASSERT(geometry.shuffle_blocks >= 1);
    return geometry;
}

}  // namespace

std::int64_t GlobalOrder::Geometry::epoch_samples() const noexcept {
    if (!sets)
        return samples;
    std::int64_t sum = 0;
    for (const SampleSet& set : *sets)
        sum += set.samples_of_epoch;
    return sum;
}

std::int64_t GlobalOrder::Geometry::most_groups() const {
    const std::int64_t parts = sets ? most_parts(*sets, block_length) : blocks();
    const std::int64_t mixed = std::clamp<std::int64_t>(shuffle_blocks, 1, parts);
    return (parts + mixed - 1) / mixed;
}

GlobalOrder::GlobalOrder(const Geometry& geometry,
                         std::uint64_t seed,
                         std::int64_t epoch,
                         Shuffle shuffle)
    : geometry_{checked(geometry)},
      key_{mix_keys(seed, static_cast<std::uint64_t>(epoch))},
      shuffle_{shuffle},
      blocks_{geometry.blocks(), key_},
      missing_{geometry.blocks() * geometry.block_length - geometry.samples} {
    geometry_.shuffle_blocks = std::clamp<std::int64_t>(
        geometry_.shuffle_blocks, 1, std::max<std::int64_t>(geometry_.blocks(), 1));
    if (shuffle_ == Shuffle::no)
        geometry_.shuffle_blocks = 1;
    const std::int64_t last = geometry_.blocks() - 1;
    ragged_slot_ = slot_of(last);
    if (geometry_.sets && shuffle_ == Shuffle::yes)
        parts_ = std::make_shared<const EpochParts>(
            *geometry_.sets, geometry_.block_length, geometry.shuffle_blocks, seed, epoch, key_);
}

std::int64_t GlobalOrder::group_length() const noexcept {
    return geometry_.shuffle_blocks * geometry_.block_length;
}

std::int64_t GlobalOrder::groups() const noexcept {
    if (parts_)
        return parts_->groups();
    return (geometry_.blocks() + geometry_.shuffle_blocks - 1) / geometry_.shuffle_blocks;
}

std::int64_t GlobalOrder::group_begin(std::int64_t group) const {
    HETSEQ_ASSERT(group >= 0 && group <= groups());
    if (parts_)
        return parts_->group_begin(group);
    const std::int64_t slots = std::min(group * geometry_.shuffle_blocks, geometry_.blocks());
    const std::int64_t full = slots * geometry_.block_length;
    return ragged_slot_ < slots ? full - missing_ : full;
}

std::int64_t GlobalOrder::group_of(std::int64_t position) const {
    HETSEQ_ASSERT(position >= 0 && position < size());
    if (parts_)
        return parts_->group_of(position);
    const std::int64_t ragged_group = ragged_slot_ / geometry_.shuffle_blocks;
    const bool behind_ragged = position >= group_end(ragged_group);
    return (behind_ragged ? position + missing_ : position) / group_length();
}

std::int64_t GlobalOrder::slot_of(std::int64_t block) const {
    return shuffle_ == Shuffle::yes ? blocks_.inverse(block) : block;
}

std::int64_t GlobalOrder::block_at(std::int64_t slot) const {
    return shuffle_ == Shuffle::yes ? blocks_(slot) : slot;
}

// `slot_position` counts the samples of the permuted blocks end to end.
std::int64_t GlobalOrder::sample_at(std::int64_t slot_position) const {
    if (parts_)
        return parts_->sample_at(slot_position);
    const std::int64_t length = geometry_.block_length;
    const bool behind_ragged = slot_position >= (ragged_slot_ + 1) * length - missing_;
    const std::int64_t even = behind_ragged ? slot_position + missing_ : slot_position;
    return block_at(even / length) * length + even % length;
}

std::int64_t GlobalOrder::operator()(std::int64_t position) const {
    HETSEQ_ASSERT(position >= 0 && position < size());
    if (shuffle_ == Shuffle::no)
        return position;
    const std::int64_t group = group_of(position);
    const std::int64_t begin = group_begin(group);
    const KeyedPermutation within{group_end(group) - begin,
                                  mix_keys(~key_, static_cast<std::uint64_t>(group))};
    return sample_at(begin + within(position - begin));
}

std::vector<std::int64_t> GlobalOrder::group_blocks(std::int64_t group) const {
    std::vector<std::int64_t> blocks;
    std::unordered_set<std::int64_t> known;
    for (const BlockRange& part : group_parts(group))
        if (known.insert(part.block).second)
            blocks.push_back(part.block);
    return blocks;
}

std::vector<BlockRange> GlobalOrder::group_parts(std::int64_t group) const {
    if (parts_) {
        const std::span<const BlockRange> parts = parts_->group_parts(group);
        return {parts.begin(), parts.end()};
    }
    const std::int64_t begin = group * geometry_.shuffle_blocks;
    const std::int64_t end = std::min(begin + geometry_.shuffle_blocks, geometry_.blocks());
    std::vector<BlockRange> parts;
    for (std::int64_t slot = begin; slot < end; ++slot) {
        const std::int64_t block = block_at(slot);
        const std::int64_t first = block * geometry_.block_length;
        parts.push_back(
            {block, {first, std::min(first + geometry_.block_length, geometry_.samples)}});
    }
    return parts;
}

std::int64_t GlobalOrder::group_of_block(std::int64_t block, std::int64_t group) const {
    if (!parts_)
        return slot_of(block) / geometry_.shuffle_blocks;
    const std::optional<std::int64_t> last = parts_->last_group(block, group);
    const std::optional<std::int64_t> found = last ? last : parts_->next_group(block, group);
    HETSEQ_ASSERT(found);
    return *found;
}

std::optional<std::int64_t> GlobalOrder::next_group_of_block(std::int64_t block,
                                                             std::int64_t group) const {
    if (parts_)
        return parts_->next_group(block, group);
    const std::int64_t own = slot_of(block) / geometry_.shuffle_blocks;
    return own >= group ? std::optional{own} : std::nullopt;
}

}  // namespace hetseq
