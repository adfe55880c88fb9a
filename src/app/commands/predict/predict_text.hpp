#pragma once

#include "hetseq/app/commands.hpp"

namespace hetseq {

/// `hetseq predict RUN < lines`, for models of text. Collective.
int predict_text(const CommandContext& context);

}  // namespace hetseq
