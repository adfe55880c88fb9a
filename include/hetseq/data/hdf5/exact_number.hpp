#pragma once

#include <cstdint>
#include <string>
#include <variant>

namespace hetseq {

/// A value of a dataset: exact for integers of up to 64 bits.
using Number = std::variant<std::int64_t, double>;

/// "-3", "0.25", "nan". Floating point with 9 digits.
std::string number_text(const Number& number);

}  // namespace hetseq
