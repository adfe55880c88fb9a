#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "hetseq/model/decoding/beam_search.hpp"
#include "hetseq/model/decoding/step_decoder.hpp"

namespace hetseq {

class Transformer;

/// Translates by a beam search.
class Translator {
public:
    /// `source_vocab_size`: the ids of sources are below it.
    Translator(std::unique_ptr<DecoderModel> model,
               std::int64_t source_vocab_size,
               const SearchSpace& space)
        : model_{std::move(model)}, source_vocab_size_{source_vocab_size}, space_{space} {}
    /// Of a Transformer, with the parameters that it has now; they are copied on the CPU. Computes
    /// where they are, in their type. In fp32 and fp64 on the CPU a sentence's hypotheses do not
    /// depend, to the last bit, on the others of its batch nor on the number of threads; elsewhere
    /// they may in their rounding.
    explicit Translator(const Transformer& model);

    std::int64_t max_positions() const { return space_.max_positions; }

    /// One batch. `sources`: ids, the end symbol last, of at most `max_positions` tokens. Returns
    /// each one's hypotheses, best first. Throws BadData for an id outside of the vocabulary.
    std::vector<std::vector<Hypothesis>> translate(std::span<const Source> sources,
                                                   const BeamOptions& options);

private:
    std::unique_ptr<DecoderModel> model_;
    std::int64_t source_vocab_size_;
    SearchSpace space_;
};

}  // namespace hetseq
