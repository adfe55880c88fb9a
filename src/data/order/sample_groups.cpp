#include "hetseq/data/order/sample_groups.hpp"

#include <algorithm>

#include "hetseq/util/error.hpp"

namespace hetseq {

namespace {

std::int64_t group_count(std::int64_t samples, std::int64_t size) {
    HETSEQ_ASSERT(samples >= 0 && size >= 1);
    return samples == 0 ? 0 : std::max<std::int64_t>(1, samples / size);
}

// Of samples of one shape: as many groups each, but for one.
std::vector<Slice> cut_evenly(std::span<const Slice> groups, std::int64_t most_samples) {
    std::int64_t largest = 1;
    for (const Slice& group : groups)
        largest = std::max(largest, group.size());
    const MicroBatchCap cap{.samples = std::max<std::int64_t>(1, most_samples / largest)};
    std::vector<Slice> cuts = cut_into_micro_batches(std::ssize(groups), cap);
    for (Slice& cut : cuts)
        cut = {groups[static_cast<std::size_t>(cut.begin)].begin,
               groups[static_cast<std::size_t>(cut.end - 1)].end};
    return cuts;
}

}  // namespace

std::vector<Slice> groups_of(std::int64_t samples, std::int64_t size) {
    const std::int64_t count = group_count(samples, size);
    std::vector<Slice> groups;
    std::int64_t begin = 0;
    for (std::int64_t k = 1; k <= count; ++k) {
        // The first i with floor(i count / samples) >= k.
        const auto end = static_cast<std::int64_t>((__int128{k} * samples + count - 1) / count);
        groups.push_back({begin, end});
        begin = end;
    }
    return groups;
}

std::int64_t largest_group(std::int64_t samples, std::int64_t size) {
    const std::int64_t count = group_count(samples, size);
    return count == 0 ? 0 : (samples + count - 1) / count;
}

std::vector<Slice> cut_groups(std::span<const Slice> groups,
                              std::span<const std::int64_t> lengths,
                              const MicroBatchCap& cap) {
    if (lengths.empty())
        return cut_evenly(groups, cap.samples);
    std::vector<Slice> cuts;
    std::int64_t longest = 0;  // of the last micro-batch
    for (const Slice& group : groups) {
        const std::int64_t own =
            *std::max_element(lengths.begin() + group.begin, lengths.begin() + group.end);
        if (!cuts.empty()) {
            const std::int64_t size = group.end - cuts.back().begin;
            const std::int64_t longer = std::max(longest, own);
            if (size <= cap.samples && (longer == 0 || size <= cap.tokens / longer)) {
                cuts.back().end = group.end;
                longest = longer;
                continue;
            }
        }
        cuts.push_back(group);
        longest = own;
    }
    return cuts;
}

}  // namespace hetseq
