#pragma once

#include <cstdint>
#include <string>

namespace hetseq {

inline constexpr double bytes_of_mib = 1 << 20;

/// "1 epoch", "3 epochs".
std::string count_text(std::int64_t count, const std::string& noun);

/// "34.7 %" from 0.347; less than a hundredth of a percent, which rounding may leave, is "0 %".
std::string percent_text(double fraction, int digits = 3);

}  // namespace hetseq
