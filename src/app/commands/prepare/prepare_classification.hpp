#pragma once

#include "hetseq/app/commands.hpp"

namespace hetseq {

/// `hetseq prepare classification`. Collective.
void prepare_classification_of(const CommandContext& context);

}  // namespace hetseq
