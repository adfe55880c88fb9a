#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace hetseq::detail {

/// How often each n-gram occurs. The keys are views into the text.
using NgramCounts = std::unordered_map<std::u32string_view, std::int64_t>;

/// Of the `order` characters from each place on.
NgramCounts count_character_ngrams(std::u32string_view text, std::size_t order);

/// Words with one blank between them, so that n-grams of words are parts of one text.
class WordSequence {
public:
    /// No word holds a blank.
    explicit WordSequence(std::span<const std::u32string_view> words);

    std::int64_t size() const { return static_cast<std::int64_t>(ends_.size()); }  // words
    /// The counts are views into this object.
    NgramCounts count_ngrams(std::size_t order) const;

private:
    std::u32string text_;
    std::vector<std::size_t> begins_;  // of each word in text_
    std::vector<std::size_t> ends_;
};

/// n-grams that both have, each as often as the one that has it less often.
std::int64_t count_matches(const NgramCounts& one, const NgramCounts& other);

std::int64_t count_all(const NgramCounts& counts);

}  // namespace hetseq::detail
