#pragma once

#include <string>

#include "hetseq/text/basic_tokenizer.hpp"

namespace hetseq {

/// The tokenizer_config.json that Hugging Face's BertTokenizer reads beside a vocab.txt: what
/// becomes of case and accents.
std::string tokenizer_config_json(const BasicTokenizerOptions& options);

}  // namespace hetseq
