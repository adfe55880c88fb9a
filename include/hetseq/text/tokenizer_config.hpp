#pragma once

#include <string>

#include "hetseq/text/basic_tokenizer.hpp"

namespace hetseq {

/// The tokenizer_config.json that Hugging Face's BertTokenizer reads beside a vocab.txt: what
/// becomes of case and accents.
std::string tokenizer_config_json(const BasicTokenizerOptions& options);

/// The same back; keys that are absent are as Hugging Face takes them. Throws BadData that names
/// `origin`.
BasicTokenizerOptions parse_tokenizer_config(const std::string& text, const std::string& origin);

}  // namespace hetseq
