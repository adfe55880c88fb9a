#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "hetseq/data/order/keyed_draws.hpp"

namespace hetseq {

/// What a vocabulary says of its pieces to masking.
struct MaskingVocabulary {
    std::int64_t size = 0;
    std::int32_t mask = 0;             // [MASK]
    std::int32_t begin = 0;            // [CLS]
    std::int32_t separator = 0;        // [SEP]
    std::vector<bool> continues = {};  // by id: the piece continues a word; empty: none does
};

struct MaskingOptions {
    double prob = 0.15;  // of a token to be predicted
    std::int64_t most_predictions = 20;
    bool whole_words = false;
};

struct MaskingCounts {
    std::int64_t masked = 0;    // predictions whose token became [MASK]
    std::int64_t kept = 0;      // whose token stays
    std::int64_t replaced = 0;  // whose token became a random one
};

/// Chooses tokens of sequences to be predicted, as Devlin et al. 2019, section 3.1, and google-
/// research's create_pretraining_data.py do: `prob` of a sequence's tokens, at least one and at
/// most `most_predictions`. Of these 80 % become [MASK], 10 % a random token, 10 % stay. With whole
/// words, all pieces of a word are chosen or none. [CLS] and [SEP] are never chosen. It keeps
/// memory from call to call.
class TokenMasker {
public:
    TokenMasker(MaskingVocabulary vocabulary, const MaskingOptions& options)
        : vocabulary_{std::move(vocabulary)}, options_{options} {}

    /// Changes `tokens`, a sequence without padding.
    void mask(std::span<std::int32_t> tokens, KeyedDraws& draws, MaskingCounts& counts);

    /// What the last call chose, in their order: positions, and the tokens that stood there.
    std::span<const std::int32_t> positions() const { return positions_; }
    std::span<const std::int32_t> labels() const { return labels_; }

private:
    // In `candidates_`; what is chosen or left out as one.
    struct Word {
        std::size_t begin = 0;
        std::size_t end = 0;
    };

    void find_words(std::span<const std::int32_t> tokens);
    void choose(const Word& word,
                std::span<std::int32_t> tokens,
                KeyedDraws& draws,
                MaskingCounts& counts);
    std::int32_t shown(std::int32_t token, KeyedDraws& draws, MaskingCounts& counts) const;

    MaskingVocabulary vocabulary_;
    MaskingOptions options_;
    std::vector<std::int32_t> candidates_;  // positions
    std::vector<Word> words_;
    std::vector<std::int32_t> before_;  // the tokens as they were
    std::vector<std::int32_t> positions_, labels_;
};

}  // namespace hetseq
