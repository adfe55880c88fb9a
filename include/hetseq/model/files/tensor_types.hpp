#pragma once

#include <c10/core/ScalarType.h>

#include "hetseq/util/files/safetensors.hpp"

namespace hetseq {

/// The file format's name for `type`. Throws BadConfig for a type that it does not have.
SafetensorType file_type_of(at::ScalarType type);
/// The other way round.
at::ScalarType scalar_type_of(SafetensorType type) noexcept;

}  // namespace hetseq
