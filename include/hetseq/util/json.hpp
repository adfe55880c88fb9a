#pragma once

#include <iosfwd>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace hetseq {

// Texts in JSON are read and written by these alone. A unit that calls the library's own parser
// takes a compiler two seconds longer. `Json` is nlohmann::json or nlohmann::ordered_json.

/// Throws nlohmann::json::exception where it is no JSON.
template <class Json>
Json parse_json(std::string_view text);
template <class Json>
Json parse_json(std::istream& text);

/// `is_discarded()` where it is no JSON.
template <class Json>
Json parse_json_or_discard(std::string_view text);
template <class Json>
Json parse_json_or_discard(std::istream& text);

/// With lines that are indented by `indent` for each level, or one line where that is negative.
/// Throws nlohmann::json::exception where a string is not UTF-8.
std::string json_text(const nlohmann::json& json, int indent = -1);
std::string json_text(const nlohmann::ordered_json& json, int indent = -1);

}  // namespace hetseq
