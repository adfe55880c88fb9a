#pragma once

#include <string>

#include <ATen/core/Tensor.h>

namespace hetseq {

/// One output of a model for the samples of a micro-batch: a row a sample.
struct Prediction {
    std::string name;   // of the dataset that holds it
    at::Tensor values;  // (n, row shape...); of rows of unequal length (values of all rows, ...),
                        // end to end
    at::Tensor row_lengths{};  // (n) int64 where rows have unequal lengths, otherwise undefined
};

}  // namespace hetseq
