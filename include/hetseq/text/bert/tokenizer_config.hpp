#pragma once

#include <string>
#include <string_view>

#include "hetseq/text/bert/basic_tokenizer.hpp"

namespace hetseq {

/// The tokenizer_config.json that Hugging Face's BertTokenizer reads beside a vocab.txt: what
/// becomes of case and accents.
std::string tokenizer_config_json(const BasicTokenizerOptions& options);

/// The vocab.txt of a tokenizer.json, which newer versions of transformers write in its place.
/// Throws BadData that names `origin` for anything but a vocabulary of WordPiece with "##" and
/// "[UNK]".
std::string vocabulary_of_tokenizer_json(std::string_view bytes, const std::string& origin);

/// The same back; keys that are absent are as Hugging Face takes them. Throws BadData that names
/// `origin`.
BasicTokenizerOptions parse_tokenizer_config(const std::string& text, const std::string& origin);

}  // namespace hetseq
