#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hetseq/model/decoding/step_decoder.hpp"

namespace hetseq {

struct BeamOptions {
    std::int64_t beam = 5;        // hypotheses that are followed at once; 1 is greedy search
    std::int64_t hypotheses = 1;  // that are returned, up to `beam`
    double length_penalty = 1;    // a score is divided by length^length_penalty
    // The longest translation of a source of n tokens, its end symbol counted, has
    // length_factor * n + length_constant tokens before its own end symbol.
    double length_factor = 0;
    std::int64_t length_constant = 200;
    std::int64_t min_length = 1;  // tokens before the end symbol
    double unknown_penalty = 0;   // taken from the log-probability of each unknown symbol
};

/// Throws BadConfig, naming the option of the command line, for values that make no sense.
void check(const BeamOptions& options);

struct Hypothesis {
    std::vector<std::int32_t> tokens;  // without the end symbol
    double log_probability = 0;        // of the tokens and the end symbol, penalties taken off
    double score = 0;                  // log_probability / (tokens + 1)^length_penalty
};

/// What a beam search knows of the vocabulary and the model.
struct SearchSpace {
    std::int32_t begin = 1;
    std::int32_t end = 2;
    std::int64_t max_positions = 1024;  // of a translation, the end symbol counted
};

/// Beam search as fairseq does it (fairseq/sequence_generator.py). A step looks at the 2 * beam
/// best continuations of a sentence. Those among the first `beam` that end are finished; the best
/// `beam` others go on. A sentence is done when `beam` hypotheses are finished, or at its longest
/// length, where all end. Unlike fairseq's, the longest length comes from the sentence's own source
/// and not from the longest one of its batch. `source_lengths`: tokens of each source, the end
/// symbol counted. Returns for each sentence its hypotheses, best score first. Throws BadData when
/// the decoder's scores are no numbers.
std::vector<std::vector<Hypothesis>> beam_search(StepDecoder& decoder,
                                                 std::span<const std::int64_t> source_lengths,
                                                 const SearchSpace& space,
                                                 const BeamOptions& options);

}  // namespace hetseq
