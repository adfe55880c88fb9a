#include "hetseq/util/quantity.hpp"

#include <cmath>

#include "hetseq/util/text.hpp"

namespace hetseq {

std::string count_text(std::int64_t count, const std::string& noun) {
    return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string percent_text(double fraction, int digits) {
    constexpr double least = 0.01;
    const double percent = 100 * fraction;
    return (std::abs(percent) < least ? "0" : format_number(percent, digits)) + " %";
}

}  // namespace hetseq
