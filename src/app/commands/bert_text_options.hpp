#pragma once

#include "hetseq/text/basic_tokenizer.hpp"
#include "hetseq/app/command_line/command_words.hpp"

namespace hetseq {

/// What --cased and --accents say.
BasicTokenizerOptions bert_text_options(const CommandWords& words);

}  // namespace hetseq
