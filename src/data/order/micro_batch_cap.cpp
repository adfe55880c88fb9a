#include "hetseq/data/order/micro_batch_cap.hpp"

#include <algorithm>

#include "hetseq/util/error.hpp"

namespace hetseq {

namespace {

// Each micro-batch takes as many samples as it may.
std::vector<Slice> cut_greedily(std::span<const std::int64_t> lengths, const MicroBatchCap& cap) {
    std::vector<Slice> cuts;
    std::int64_t longest = 0;  // of the last micro-batch
    for (std::int64_t i = 0; i < std::ssize(lengths); ++i) {
        const std::int64_t length = lengths[static_cast<std::size_t>(i)];
        if (!cuts.empty()) {
            const std::int64_t size = cuts.back().size() + 1;
            const std::int64_t longer = std::max(longest, length);
            if (size <= cap.samples && (longer == 0 || size <= cap.tokens / longer)) {
                cuts.back().end = i + 1;
                longest = longer;
                continue;
            }
        }
        cuts.push_back({i, i + 1});
        longest = length;
    }
    return cuts;
}

std::int64_t longest_in(std::span<const std::int64_t> lengths, const Slice& cut) {
    return *std::max_element(lengths.begin() + cut.begin, lengths.begin() + cut.end);
}

std::int64_t largest(std::span<const std::int64_t> lengths, std::span<const Slice> cuts) {
    std::int64_t most = 0;
    for (const Slice& cut : cuts)
        most = std::max(most, cut.size() * longest_in(lengths, cut));
    return most;
}

}  // namespace

MicroBatchCap smaller(const MicroBatchCap& a, const MicroBatchCap& b) {
    return {std::min(a.samples, b.samples), std::min(a.tokens, b.tokens)};
}

std::vector<Slice> cut_into_micro_batches(std::int64_t size, const MicroBatchCap& cap) {
    if (size == 0)
        return {};
    HETSEQ_ASSERT(cap.samples >= 1);
    const std::int64_t count = size / cap.samples + (size % cap.samples != 0 ? 1 : 0);
    std::vector<Slice> cuts;
    std::int64_t begin = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t end = begin + size / count + (i < size % count ? 1 : 0);
        cuts.push_back({begin, end});
        begin = end;
    }
    return cuts;
}

std::vector<Slice> cut_into_micro_batches(std::span<const std::int64_t> lengths,
                                          const MicroBatchCap& cap) {
    HETSEQ_ASSERT(lengths.empty() || (cap.samples >= 1 && cap.tokens >= 1));
    std::vector<Slice> best = cut_greedily(lengths, cap);
    const std::size_t count = best.size();
    if (count <= 1)
        return best;
    std::int64_t least = 0, most = largest(lengths, best);  // `least` tokens are too few
    while (least + 1 < most) {
        const std::int64_t middle = least + (most - least) / 2;
        std::vector<Slice> cuts = cut_greedily(lengths, {cap.samples, middle});
        if (cuts.size() > count || largest(lengths, cuts) > middle) {
            least = middle;
        } else {
            best = std::move(cuts);
            most = middle;
        }
    }
    return best;
}

std::int64_t padded_tokens(std::span<const std::int64_t> lengths, std::span<const Slice> cuts) {
    std::int64_t tokens = 0;
    for (const Slice& cut : cuts)
        tokens += cut.size() * longest_in(lengths, cut);
    return tokens;
}

}  // namespace hetseq
