#pragma once

#include <c10/core/ScalarType.h>

#include "hetseq/util/safetensors.hpp"

namespace hetseq {

/// The file format's name for `type`: a floating type or kLong.
SafetensorType file_type_of(at::ScalarType type);

}  // namespace hetseq
