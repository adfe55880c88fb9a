#include "hetseq/optim/gradient_buckets.hpp"

#include <algorithm>

namespace hetseq {

std::vector<GradientBucket> cut_buckets(
    const FlatParameters& parameters,
    std::int64_t bucket_bytes,
    const std::function<std::size_t(const FlatParameters::Parameter&)>& group_of) {
    const auto element_size = static_cast<std::int64_t>(parameters.gradients().element_size());
    const std::int64_t least = std::max<std::int64_t>(1, bucket_bytes / element_size);
    std::vector<GradientBucket> buckets;
    bool is_open = false;
    for (const FlatParameters::Parameter& parameter : parameters.all_parameters()) {
        const std::size_t group = group_of ? group_of(parameter) : 0;
        if (!is_open || buckets.back().group != group)
            buckets.push_back({.offset = parameter.offset, .group = group});
        GradientBucket& bucket = buckets.back();
        ++bucket.parameters;
        bucket.numel += FlatParameters::padded(parameter.numel, element_size);
        is_open = bucket.numel < least;
    }
    std::erase_if(buckets, [](const GradientBucket& bucket) {
        return bucket.offset == FlatParameters::not_held;
    });
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
