#include "hetseq/data/hdf5/chunk_shape.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace hetseq {

namespace {

constexpr double least_bytes = 8 * 1024;
constexpr double most_bytes = 1024 * 1024;
constexpr double bytes_for_a_mebibyte = 16 * 1024;
constexpr double tolerance = 0.5;

double product(const std::vector<std::int64_t>& shape) {
    double result = 1;
    for (const std::int64_t length : shape)
        result *= static_cast<double>(length);
    return result;
}

}  // namespace

std::vector<std::int64_t> chunk_shape(std::vector<std::int64_t> shape, std::int64_t bytes) {
    const auto element = static_cast<double>(bytes);
    const double mebibytes = product(shape) * element / (1024 * 1024);
    const double wanted = std::clamp(
        bytes_for_a_mebibyte * std::exp2(std::log10(mebibytes)), least_bytes, most_bytes);
    for (std::size_t axis = 0;; axis = (axis + 1) % shape.size()) {
        const double chunk = product(shape) * element;
        const bool is_near = chunk < wanted || std::abs(chunk - wanted) / wanted < tolerance;
        if ((is_near && chunk < most_bytes) || product(shape) == 1)
            return shape;
        shape[axis] = (shape[axis] + 1) / 2;
    }
}

}  // namespace hetseq
