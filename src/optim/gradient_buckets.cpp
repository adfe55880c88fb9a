#include "hetseq/optim/gradient_buckets.hpp"

#include <algorithm>

namespace hetseq {

std::vector<GradientBucket> cut_buckets(const FlatParameters& parameters,
                                        std::int64_t bucket_bytes) {
    const at::Tensor gradients = parameters.gradients();
    const auto& all = parameters.parameters();
    const std::int64_t least = std::max<std::int64_t>(
        1, bucket_bytes / static_cast<std::int64_t>(gradients.element_size()));
    std::vector<GradientBucket> buckets;
    GradientBucket bucket;
    for (std::size_t i = 0; i < all.size(); ++i) {
        const bool is_last = i + 1 == all.size();
        const std::int64_t end = is_last ? gradients.numel() : all[i + 1].offset;
        ++bucket.parameters;
        bucket.numel = end - bucket.offset;
        if (!is_last && bucket.numel < least)
            continue;
        buckets.push_back(bucket);
        bucket = {end, 0, 0};
    }
    return buckets;
}

std::vector<std::vector<std::int64_t>> blocks_of(const FlatParameters& parameters,
                                                 const std::vector<GradientBucket>& buckets) {
    const auto& blocks = parameters.blocks();
    std::vector<std::vector<std::int64_t>> lengths(buckets.size());
    std::size_t bucket = 0;
    for (std::size_t b = 0; b < blocks.size(); ++b) {
        while (blocks[b].offset >= buckets[bucket].offset + buckets[bucket].numel)
            ++bucket;
        const std::int64_t end =
            b + 1 < blocks.size() ? blocks[b + 1].offset : parameters.values().numel();
        lengths[bucket].push_back(end - blocks[b].offset);
    }
    return lengths;
}

std::vector<OwnedRange> ranges_in(const GradientBucket& bucket,
                                  const std::vector<OwnedRange>& ranges) {
    std::vector<OwnedRange> within;
    for (const OwnedRange& range : ranges) {
        const std::int64_t begin = std::max(range.begin, bucket.offset);
        const std::int64_t end = std::min(range.begin + range.length, bucket.offset + bucket.numel);
        if (begin < end)
            within.push_back({range.owner, begin - bucket.offset, end - begin});
    }
    return within;
}

}  // namespace hetseq
