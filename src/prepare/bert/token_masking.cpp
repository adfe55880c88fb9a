#include "hetseq/prepare/bert/token_masking.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace hetseq {

namespace {

constexpr double masked_share = 0.8;
constexpr double kept_share_of_rest = 0.5;

// Halves go to the even number, as in Python.
std::int64_t count_to_predict(std::size_t tokens, const MaskingOptions& options) {
    const double wanted = std::nearbyint(static_cast<double>(tokens) * options.prob);
    return std::min(options.most_predictions,
                    std::max<std::int64_t>(1, static_cast<std::int64_t>(wanted)));
}

}  // namespace

void TokenMasker::find_words(std::span<const std::int32_t> tokens) {
    candidates_.clear();
    words_.clear();
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        const std::int32_t token = tokens[i];
        if (token == vocabulary_.begin || token == vocabulary_.separator)
            continue;
        candidates_.push_back(static_cast<std::int32_t>(i));
        // A model may have ids that the vocabulary lacks.
        const auto id = static_cast<std::size_t>(token);
        const bool continues = options_.whole_words && !words_.empty() &&
                               id < vocabulary_.continues.size() && vocabulary_.continues[id];
        if (!continues)
            words_.push_back({candidates_.size() - 1, candidates_.size() - 1});
        words_.back().end = candidates_.size();
    }
}

std::int32_t TokenMasker::shown(std::int32_t token,
                                KeyedDraws& draws,
                                MaskingCounts& counts) const {
    if (draws.fraction() < masked_share) {
        ++counts.masked;
        return vocabulary_.mask;
    }
    if (draws.fraction() < kept_share_of_rest) {
        ++counts.kept;
        return token;
    }
    ++counts.replaced;
    return static_cast<std::int32_t>(draws.below(vocabulary_.size));
}

void TokenMasker::choose(const Word& word,
                         std::span<std::int32_t> tokens,
                         KeyedDraws& draws,
                         MaskingCounts& counts) {
    for (std::size_t i = word.begin; i < word.end; ++i) {
        std::int32_t& token = tokens[static_cast<std::size_t>(candidates_[i])];
        token = shown(token, draws, counts);
        positions_.push_back(candidates_[i]);
    }
}

void TokenMasker::mask(std::span<std::int32_t> tokens, KeyedDraws& draws, MaskingCounts& counts) {
    find_words(tokens);
    before_.assign(tokens.begin(), tokens.end());
    positions_.clear();
    const std::int64_t wanted = count_to_predict(tokens.size(), options_);
    // The words in random order, as far as it is needed (Fisher and Yates).
    for (std::size_t i = 0; i < words_.size() && std::ssize(positions_) < wanted; ++i) {
        const auto rest = std::ssize(words_) - static_cast<std::ptrdiff_t>(i);
        std::swap(words_[i], words_[i + static_cast<std::size_t>(draws.below(rest))]);
        const auto length = static_cast<std::int64_t>(words_[i].end - words_[i].begin);
        if (std::ssize(positions_) + length <= wanted)
            choose(words_[i], tokens, draws, counts);
    }
    std::sort(positions_.begin(), positions_.end());
    labels_.clear();
    for (const std::int32_t position : positions_)
        labels_.push_back(before_[static_cast<std::size_t>(position)]);
}

}  // namespace hetseq
