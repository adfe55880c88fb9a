#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "hetseq/model/decoding/beam_search.hpp"

namespace hetseq {

class Transformer;
namespace detail {
class DecoderModel;
}

/// Translates with the parameters that a model had when this was made; they are copied on the CPU.
/// In fp32 and fp64 on the CPU a sentence's hypotheses do not depend, to the last bit, on the
/// others of its batch nor on the number of threads; elsewhere they may in their rounding.
class Translator {
public:
    /// Computes where the model's parameters are, in their type.
    explicit Translator(const Transformer& model);
    Translator(Translator&&) noexcept;
    ~Translator();

    std::int64_t max_positions() const { return space_.max_positions; }

    /// One batch. `sources`: ids, the end symbol last, of at most `max_positions` tokens. Returns
    /// each one's hypotheses, best first. Throws BadData for an id outside of the vocabulary.
    std::vector<std::vector<Hypothesis>> translate(
        std::span<const std::vector<std::int32_t>> sources, const BeamOptions& options);

private:
    std::unique_ptr<detail::DecoderModel> model_;
    std::int64_t source_vocab_size_;
    SearchSpace space_;
};

}  // namespace hetseq
