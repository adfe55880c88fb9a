#pragma once

#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include "hetseq/data/loading/micro_batch.hpp"

namespace hetseq::test {

/// `n` random images (n, 1, 28, 28) fp64 with labels, the same each time.
inline MicroBatch image_batch(std::int64_t n) {
    at::manual_seed(5);
    MicroBatch batch;
    batch.tensors = {{"images", at::randn({n, 1, 28, 28}, at::kDouble)},
                     {"labels", at::randint(10, {n}, at::kLong)}};
    batch.sample_ids = at::arange(100, 100 + n, at::kLong);
    batch.samples = batch.units = n;
    return batch;
}

}  // namespace hetseq::test
