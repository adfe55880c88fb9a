#include "hetseq/data/order/epoch_parts.hpp"

#include <algorithm>
#include <iterator>

#include "hetseq/util/error.hpp"
#include "hetseq/data/order/keyed_permutation.hpp"

namespace hetseq {

namespace {

constexpr std::uint64_t slices_key = 0x736C69636573;  // differs from the keys of the order

// The slice [begin, begin + size) of `parts` end to end, which hold `samples`; it may go on at
// their beginning.
void append_slice(std::span<const BlockRange> parts,
                  std::int64_t samples,
                  std::int64_t begin,
                  std::int64_t size,
                  std::vector<BlockRange>& slice) {
    for (const std::int64_t shift : {std::int64_t{0}, samples}) {
        std::int64_t first = shift;  // of the part
        for (const BlockRange& part : parts) {
            const std::int64_t from = std::max(begin, first) - first;
            const std::int64_t to = std::min(begin + size, first + part.samples.size()) - first;
            if (from < to)
                slice.push_back({part.block, {part.samples.begin + from, part.samples.begin + to}});
            first += part.samples.size();
        }
    }
}

void append_set(const SampleSet& set,
                std::int64_t block_length,
                std::uint64_t key,
                std::int64_t epoch,
                std::vector<BlockRange>& chosen) {
    const std::vector<BlockRange> parts = block_ranges(set.ranges, block_length);
    const std::int64_t samples = set.samples();
    HETSEQ_ASSERT(samples >= 1 && set.samples_of_epoch >= 1);
    for (std::int64_t i = 0; i < set.samples_of_epoch / samples; ++i)
        chosen.insert(chosen.end(), parts.begin(), parts.end());
    const std::int64_t rest = set.samples_of_epoch % samples;
    if (rest == 0)
        return;
    const KeyedPermutation order{std::ssize(parts), key};
    std::vector<BlockRange> permuted;
    for (std::int64_t i = 0; i < order.size(); ++i)
        permuted.push_back(parts[static_cast<std::size_t>(order(i))]);
    const auto begin = static_cast<std::int64_t>(static_cast<__int128>(rest) * epoch % samples);
    append_slice(permuted, samples, begin, rest, chosen);
}

}  // namespace

std::int64_t SampleSet::samples() const noexcept {
    std::int64_t sum = 0;
    for (const SampleRange& range : ranges)
        sum += range.size();
    return sum;
}

std::vector<BlockRange> block_ranges(std::span<const SampleRange> ranges,
                                     std::int64_t block_length) {
    std::vector<BlockRange> parts;
    for (const SampleRange& range : ranges)
        for (std::int64_t begin = range.begin; begin < range.end;) {
            const std::int64_t block = begin / block_length;
            const std::int64_t end = std::min((block + 1) * block_length, range.end);
            parts.push_back({block, {begin, end}});
            begin = end;
        }
    return parts;
}

// A slice may cut two parts, and begin and end in the same one.
std::int64_t most_parts(std::span<const SampleSet> sets, std::int64_t block_length) {
    std::int64_t most = 0;
    for (const SampleSet& set : sets) {
        std::int64_t parts = 0;
        for (const SampleRange& range : set.ranges)
            if (range.size() > 0)
                parts += (range.end - 1) / block_length - range.begin / block_length + 1;
        const std::int64_t rest = set.samples_of_epoch % set.samples();
        most += set.samples_of_epoch / set.samples() * parts + std::min(parts + 1, rest);
    }
    return most;
}

EpochParts::EpochParts(std::span<const SampleSet> sets,
                       std::int64_t block_length,
                       std::int64_t group_parts,
                       std::uint64_t seed,
                       std::int64_t epoch,
                       std::uint64_t epoch_key) {
    std::vector<BlockRange> chosen;
    for (std::size_t set = 0; set < sets.size(); ++set)
        append_set(
            sets[set], block_length, mix_keys(mix_keys(seed, slices_key), set), epoch, chosen);
    const KeyedPermutation order{std::ssize(chosen), epoch_key};
    group_parts_ = std::clamp<std::int64_t>(group_parts, 1, std::ssize(chosen));
    begins_.push_back(0);
    for (std::int64_t i = 0; i < order.size(); ++i) {
        parts_.push_back(chosen[static_cast<std::size_t>(order(i))]);
        begins_.push_back(begins_.back() + parts_.back().samples.size());
        uses_.emplace_back(parts_.back().block, i / group_parts_);
    }
    std::sort(uses_.begin(), uses_.end());
}

std::int64_t EpochParts::groups() const noexcept {
    return (std::ssize(parts_) + group_parts_ - 1) / group_parts_;
}

std::int64_t EpochParts::first_part(std::int64_t group) const {
    HETSEQ_ASSERT(group >= 0 && group <= groups());
    return std::min(group * group_parts_, std::ssize(parts_));
}

std::int64_t EpochParts::part_of(std::int64_t position) const {
    return std::upper_bound(begins_.begin(), begins_.end(), position) - begins_.begin() - 1;
}

std::int64_t EpochParts::group_of(std::int64_t position) const {
    return part_of(position) / group_parts_;
}

std::int64_t EpochParts::group_begin(std::int64_t group) const {
    return begins_[static_cast<std::size_t>(first_part(group))];
}

std::int64_t EpochParts::sample_at(std::int64_t position) const {
    const auto part = static_cast<std::size_t>(part_of(position));
    return parts_[part].samples.begin + position - begins_[part];
}

std::span<const BlockRange> EpochParts::group_parts(std::int64_t group) const {
    const std::int64_t first = first_part(group);
    return std::span{parts_}.subspan(static_cast<std::size_t>(first),
                                     static_cast<std::size_t>(first_part(group + 1) - first));
}

std::optional<std::int64_t> EpochParts::next_group(std::int64_t block, std::int64_t group) const {
    const auto use = std::lower_bound(uses_.begin(), uses_.end(), std::pair{block, group});
    if (use == uses_.end() || use->first != block)
        return std::nullopt;
    return use->second;
}

std::optional<std::int64_t> EpochParts::last_group(std::int64_t block, std::int64_t group) const {
    const auto behind = std::upper_bound(uses_.begin(), uses_.end(), std::pair{block, group});
    if (behind == uses_.begin() || std::prev(behind)->first != block)
        return std::nullopt;
    return std::prev(behind)->second;
}

}  // namespace hetseq
