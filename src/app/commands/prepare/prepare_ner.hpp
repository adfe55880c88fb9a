#pragma once

#include "hetseq/app/commands.hpp"

namespace hetseq {

/// `hetseq prepare ner`. Collective.
void prepare_ner_of(const CommandContext& context);

}  // namespace hetseq
