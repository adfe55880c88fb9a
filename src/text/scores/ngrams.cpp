#include "ngrams.hpp"

#include <algorithm>

namespace hetseq::detail {

NgramCounts count_character_ngrams(std::u32string_view text, std::size_t order) {
    NgramCounts counts;
    if (text.size() < order)
        return counts;
    counts.reserve(text.size());
    for (std::size_t at = 0; at + order <= text.size(); ++at)
        ++counts[text.substr(at, order)];
    return counts;
}

WordSequence::WordSequence(std::span<const std::u32string_view> words) {
    begins_.reserve(words.size());
    ends_.reserve(words.size());
    for (const std::u32string_view word : words) {
        if (!text_.empty())
            text_ += U' ';
        begins_.push_back(text_.size());
        text_ += word;
        ends_.push_back(text_.size());
    }
}

NgramCounts WordSequence::count_ngrams(std::size_t order) const {
    NgramCounts counts;
    counts.reserve(ends_.size());
    const std::u32string_view text = text_;
    for (std::size_t first = 0; first + order <= ends_.size(); ++first)
        ++counts[text.substr(begins_[first], ends_[first + order - 1] - begins_[first])];
    return counts;
}

std::int64_t count_matches(const NgramCounts& one, const NgramCounts& other) {
    std::int64_t matches = 0;
    for (const auto& [ngram, count] : one)
        if (const auto found = other.find(ngram); found != other.end())
            matches += std::min(count, found->second);
    return matches;
}

std::int64_t count_all(const NgramCounts& counts) {
    std::int64_t all = 0;
    for (const auto& [ngram, count] : counts)
        all += count;
    return all;
}

}  // namespace hetseq::detail
