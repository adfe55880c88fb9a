#pragma once

#include <cstdint>
#include <string>

#include "hetseq/options/options_of.hpp"
#include "hetseq/command_line/command_words.hpp"
#include "hetseq/text/scores/bleu.hpp"
#include "hetseq/text/scores/chrf.hpp"

namespace hetseq {

/// What `hetseq bleu` computes and how it prints it.
struct ScoringOptions {
    struct Metrics {
        bool bleu = false;
        bool chrf = false;
    };
    std::string input{};  // a file of translations; empty: standard input
    Metrics metrics{};
    BleuOptions bleu_options{};
    ChrfOptions chrf_options{};
    bool sentence_level = false;
    bool score_only = false;
    bool json = false;
    std::int64_t width = 1;  // digits after the point
};

OptionsOf<ScoringOptions> scoring_options();

/// `hetseq bleu`. Returns the exit code.
int bleu_command(const CommandWords& words);

}  // namespace hetseq
