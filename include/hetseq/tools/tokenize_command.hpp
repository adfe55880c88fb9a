#pragma once

#include <string>

#include "hetseq/options/options_of.hpp"
#include "hetseq/command_line/command_words.hpp"
#include "hetseq/text/bert/bert_tokenizer.hpp"

namespace hetseq {

struct TokenizeOptions {
    std::string vocabulary{};  // the file of WordPiece's pieces
    BertTokenizerOptions tokenizer{};
    bool as_pieces = false;  // print these instead of their ids
};

OptionsOf<TokenizeOptions> tokenize_options();

/// `hetseq tokenize`: lines of standard input to BERT's pieces. Returns the exit code.
int tokenize_command(const CommandWords& words);

}  // namespace hetseq
