#pragma once

#include <cstdint>

namespace hetseq::detail {

/// What one row of logits gives: log-sum-exp, sum and largest value; of the largest values the
/// first one's index.
struct RowSums {
    double log_sum_exp = 0;
    double sum = 0;
    std::int64_t largest = 0;
};

/// The sums of `logits`, `count` finite values.
RowSums row_sums(const float* logits, std::int64_t count);
RowSums row_sums(const double* logits, std::int64_t count);

/// Replaces `logits` by exp(logits - log_sum_exp) - shift.
void softmax_minus(float* logits, std::int64_t count, double log_sum_exp, double shift);
void softmax_minus(double* logits, std::int64_t count, double log_sum_exp, double shift);

}  // namespace hetseq::detail
