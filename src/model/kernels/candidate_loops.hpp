#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace hetseq::detail {

/// The largest values of a row so far, largest first; of equal ones the first that came.
template <class T>
class LargestValues {
public:
    explicit LargestValues(std::int64_t count)
        : values_(static_cast<std::size_t>(count), -std::numeric_limits<T>::infinity()),
          ids_(static_cast<std::size_t>(count), -1) {}

    /// A value that is not larger has no place.
    T smallest() const { return values_.back(); }
    /// `value` is larger than `smallest`.
    void insert(T value, std::int32_t id);
    void insert(const LargestValues& others);

    const std::vector<T>& values() const { return values_; }
    const std::vector<std::int32_t>& ids() const { return ids_; }  // -1: there are fewer values

private:
    std::vector<T> values_;
    std::vector<std::int32_t> ids_;
};

/// Sum of exp(x - highest) over a piece of a row.
struct PowerSum {
    double highest = 0;
    double sum = 0;
};

/// Where `power_sum` puts the largest value of those that value `i` of a row stands among: in each
/// block of values those that are `highest_lanes` apart.
inline constexpr std::int64_t highest_lanes = 16, highest_block = 32 * highest_lanes;
constexpr std::int64_t highest_index(std::int64_t i) {
    return i / highest_block * highest_lanes + i % highest_lanes;
}
/// How many these are for `count` values.
constexpr std::int64_t highest_count(std::int64_t count) {
    return (count + highest_block - 1) / highest_block * highest_lanes;
}

/// Power sum of `count` values, and their largest ones: `highest_count` values.
PowerSum power_sum(const float* values, std::int64_t count, float* highest);
PowerSum power_sum(const double* values, std::int64_t count, double* highest);

/// Takes the values into `largest`; the first one's id is `first_id`. `highest` is what `power_sum`
/// gave, or more.
template <class T>
void take_largest(const T* values,
                  std::int64_t count,
                  const T* highest,
                  std::int32_t first_id,
                  LargestValues<T>& largest);

/// log of the sum of exp over all pieces.
double log_sum(const PowerSum* sums, std::int64_t count);

}  // namespace hetseq::detail
