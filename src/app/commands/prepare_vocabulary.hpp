#pragma once

#include "hetseq/app/commands.hpp"

namespace hetseq {

/// `hetseq prepare vocabulary`: rank 0 trains a vocabulary of WordPiece and writes it. Collective
/// over the world.
void prepare_vocabulary_of(const CommandContext& context);

}  // namespace hetseq
