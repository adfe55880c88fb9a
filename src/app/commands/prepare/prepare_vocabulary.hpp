#pragma once

#include <string>
#include <vector>

#include "hetseq/options/options_of.hpp"
#include "hetseq/text/bert/train_wordpiece.hpp"
#include "hetseq/app/commands.hpp"

namespace hetseq {

struct VocabularyOptions {
    std::vector<std::string> input{};  // files of text
    std::string output{};              // the vocabulary's file
    WordPieceTrainingOptions training{};
    BasicTokenizerOptions text{};
    bool overwrite = false;
};

OptionsOf<VocabularyOptions> vocabulary_options();

/// `hetseq prepare vocabulary`: rank 0 trains a vocabulary of WordPiece and writes it. Collective
/// over the world.
void prepare_vocabulary_of(const CommandContext& context);

}  // namespace hetseq
