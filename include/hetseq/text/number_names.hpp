#pragma once

#include <cstdint>
#include <string>

namespace hetseq {

constexpr std::int64_t most_named_number = 9'999'999;

/// As in Britain, without commas: "one million two hundred and thirty-four thousand five hundred
/// and six". `number` in [0, most_named_number].
std::string english_number(std::int64_t number);

/// "eine Million zweihundertvierunddreißigtausendfünfhundertsechs". `number` as above.
std::string german_number(std::int64_t number);

}  // namespace hetseq
