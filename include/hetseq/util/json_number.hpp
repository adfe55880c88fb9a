#pragma once

#include <cstdint>
#include <string>

#include "hetseq/util/error.hpp"
#include "hetseq/util/json.hpp"

#include <nlohmann/json.hpp>

namespace hetseq {

/// `value` as error messages show it. Arrays and objects are shown only by their type, since they
/// may have any size and depth.
template <class Json>
std::string brief_json(const Json& value) {
    return value.is_structured() ? "an " + std::string(value.type_name()) : json_text(value);
}

/// `value`, a whole number from `least` to `most`. The library's own conversion drops fractions,
/// wraps values that are too large, and takes `true` for 1. Throws BadData.
template <class Json>
std::int64_t json_integer(const Json& value, std::int64_t least, std::int64_t most) {
    const bool is_too_large =
        value.is_number_unsigned() &&
        value.template get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX);
    if (!value.is_number_integer() || is_too_large || value.template get<std::int64_t>() < least ||
        value.template get<std::int64_t>() > most)
        throw BadData(brief_json(value) + " is not a whole number from " + std::to_string(least) +
                      " to " + std::to_string(most));
    return value.template get<std::int64_t>();
}

/// `value`, a number from `least` to `most`. Throws BadData.
template <class Json>
double json_number(const Json& value, double least, double most) {
    // Comparisons that a NaN fails.
    if (!value.is_number() ||
        !(value.template get<double>() >= least && value.template get<double>() <= most))
        throw BadData(brief_json(value) + " is not a number from " + json_text(Json(least)) +
                      " to " + json_text(Json(most)));
    return value.template get<double>();
}

}  // namespace hetseq
