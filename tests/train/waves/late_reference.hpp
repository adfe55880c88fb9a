#pragma once

#include <cstdint>
#include <functional>
#include <set>

#include <ATen/core/Tensor.h>

#include "train/toy_run.hpp"

namespace hetseq::test {

/// An update's number, from 0, of whose parameters the gradients of another one are.
using ComputedAt = std::function<std::int64_t(std::int64_t update)>;

/// max(0, k - staleness), the definition.
ComputedAt late_by(std::int64_t staleness);

/// The parameters after `run`, by one rank, one update after the other: the gradients of update k
/// are computed with the parameters of `computed_at(k)`, which were kept. Those in `skipped` change
/// nothing.
at::Tensor train_late(const ToyRun& run,
                      const ComputedAt& computed_at,
                      const std::set<std::int64_t>& skipped = {});

}  // namespace hetseq::test
