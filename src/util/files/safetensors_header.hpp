#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hetseq/util/files/safetensors.hpp"

namespace hetseq::detail {

std::optional<SafetensorType> safetensor_type(const std::string& name) noexcept;

struct SafetensorsHeader {
    std::vector<SafetensorEntry> entries;  // in the order of the data
    std::map<std::string, std::string> metadata;
};

/// Parses the JSON `text` of a file whose data are `data_bytes` long. Throws BadData, naming
/// `path`, unless every tensor's offsets fit its shape and together they cover the data exactly.
SafetensorsHeader parse_safetensors_header(const std::string& text,
                                           std::uint64_t data_bytes,
                                           const std::filesystem::path& path);

}  // namespace hetseq::detail
