#include "hetseq/util/json.hpp"

#include <istream>

#include <nlohmann/json.hpp>

namespace hetseq {

template <class Json>
Json parse_json(std::string_view text) {
    return Json::parse(text);
}

template <class Json>
Json parse_json(std::istream& text) {
    return Json::parse(text);
}

template <class Json>
Json parse_json_or_discard(std::string_view text) {
    return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

template <class Json>
Json parse_json_or_discard(std::istream& text) {
    return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

std::string json_text(const nlohmann::json& json, int indent) {
    return json.dump(indent);
}

std::string json_text(const nlohmann::ordered_json& json, int indent) {
    return json.dump(indent);
}

template nlohmann::json parse_json(std::string_view);
template nlohmann::json parse_json(std::istream&);
template nlohmann::json parse_json_or_discard(std::string_view);
template nlohmann::json parse_json_or_discard(std::istream&);
template nlohmann::ordered_json parse_json(std::string_view);
template nlohmann::ordered_json parse_json(std::istream&);
template nlohmann::ordered_json parse_json_or_discard(std::string_view);
template nlohmann::ordered_json parse_json_or_discard(std::istream&);

}  // namespace hetseq
