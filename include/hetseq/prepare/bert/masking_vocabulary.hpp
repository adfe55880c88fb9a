#pragma once

#include "hetseq/text/bert/wordpiece.hpp"
#include "hetseq/prepare/bert/token_masking.hpp"

namespace hetseq {

/// What masking needs of `pieces`. Throws BadData where a special piece is missing.
MaskingVocabulary masking_vocabulary(const WordPiece& pieces);

}  // namespace hetseq
