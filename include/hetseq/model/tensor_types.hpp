#pragma once

#include <filesystem>

#include <c10/core/ScalarType.h>

#include "hetseq/util/safetensors.hpp"

namespace hetseq {

/// The file format's name for `type`: a floating type or kLong.
SafetensorType file_type_of(at::ScalarType type);
/// The other way round. Throws BadData that names `path` for a type that parameters do not have.
at::ScalarType scalar_type_of(const SafetensorEntry& entry, const std::filesystem::path& path);

}  // namespace hetseq
