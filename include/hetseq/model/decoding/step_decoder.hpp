#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace hetseq {

/// A hypothesis that goes on: where it comes from and its newest token.
struct DecoderRow {
    std::int32_t parent = 0;  // a row of the step before; in the first step, a sentence
    std::int32_t token = 0;
};

/// What a step's candidates are to be.
struct CandidateRule {
    std::int64_t count = 1;      // candidates of each row
    bool may_end = true;         // false: the end symbol is none of them
    double unknown_penalty = 0;  // taken from the log-probability of the unknown symbol
};

/// The likeliest next tokens of each row.
struct Candidates {
    std::vector<std::int32_t> tokens;       // (rows, count), likeliest first; -1: there are fewer
    std::vector<double> log_probabilities;  // (rows, count), penalties taken off
    std::vector<double> end;                // (rows), of the end symbol, whatever the rule
};

/// The decoder of one batch of sentences, which are at the same position.
class StepDecoder {
public:
    virtual ~StepDecoder() = default;

    /// Takes one more token for each hypothesis. Rows of one sentence stand together, sentences in
    /// their order. One without rows is finished and takes no more part.
    virtual void step(std::span<const DecoderRow> rows,
                      const CandidateRule& rule,
                      Candidates& candidates) = 0;
};

/// Token ids of a source, the end symbol's last.
using Source = std::vector<std::int32_t>;

/// A model's parameters, ready for decoding.
class DecoderModel {
public:
    virtual ~DecoderModel() = default;

    /// Encodes a batch. Its decoder must end before the model, and before the next one starts.
    virtual std::unique_ptr<StepDecoder> start(std::span<const Source> sources) = 0;
};

}  // namespace hetseq
