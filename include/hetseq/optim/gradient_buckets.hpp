#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "hetseq/util/owned_range.hpp"
#include "hetseq/optim/flat_parameters.hpp"

namespace hetseq {

/// Neighbouring parameters whose gradients are summed together.
struct GradientBucket {
    std::int64_t offset = 0;  // elements, in flat tensors
    std::int64_t numel = 0;
    std::size_t parameters = 0;  // how many
    std::size_t group = 0;
};

/// Buckets end at parameters, after `bucket_bytes` of gradients or more, and between parameters of
/// unlike groups (`group_of`; empty: there is one). Where this rank holds a part of the model,
/// these are the buckets of the whole model that it holds; parameters of a group have the same
/// holders, so that all of them cut alike.
std::vector<GradientBucket> cut_buckets(
    const FlatParameters& parameters,
    std::int64_t bucket_bytes,
    const std::function<std::size_t(const FlatParameters::Parameter&)>& group_of = {});

/// The lengths of the blocks of each bucket, padding included, in order.
std::vector<std::vector<std::int64_t>> blocks_of(const FlatParameters& parameters,
                                                 const std::vector<GradientBucket>& buckets);

/// What lies in `bucket` of ranges that cover flat tensors in order; counted from its first
/// element.
std::vector<OwnedRange> ranges_in(const GradientBucket& bucket,
                                  const std::vector<OwnedRange>& ranges);

}  // namespace hetseq
