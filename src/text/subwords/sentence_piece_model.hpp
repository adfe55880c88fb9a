#pragma once

#include <string>
#include <string_view>

namespace hetseq {

/// Throws BadData that names `origin` unless `bytes` are a model that SentencePiece can hold:
/// the library looks at few of its bounds, and crashes. (sentencepiece_model.proto of
/// google/sentencepiece says what a model is.) It is at most 24 MiB and 1,000,000 pieces large.
void check_sentence_piece_model(std::string_view bytes, const std::string& origin);

}  // namespace hetseq
