#pragma once

#include <string>

#include "hetseq/prepare/prepare_translation.hpp"

namespace hetseq {

/// What was written, as tables.
std::string prepared_text(const PreparedTranslation& prepared);

}  // namespace hetseq
