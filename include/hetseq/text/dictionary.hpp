#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace hetseq {

/// Calls `take` with each word of `line`: what stands between blanks, tabs and other ASCII spaces.
void for_each_word(std::string_view line, const std::function<void(std::string_view)>& take);

/// How often each word occurs in lines of text.
class WordCounts {
public:
    void add_line(std::string_view line);
    void add(std::string_view word, std::int64_t count);

    /// Word, blank, count, a line each, in no order: to send to another rank.
    std::string text() const;
    /// Adds what `text` of another one gave.
    void add_text(std::string_view text);

    /// A dictionary's bytes, for Vocabulary::parse: at most `most_ids` ids (0: any number), the
    /// three special ones included; frequent words first, equally frequent ones by their bytes.
    /// Where a word ends in "@@", as subword-nmt marks what goes on in the next word, the
    /// dictionary's mark says so.
    std::string dictionary(std::int64_t most_ids) const;

private:
    struct Hash {
        using is_transparent = void;
        std::size_t operator()(std::string_view word) const noexcept {
            return std::hash<std::string_view>{}(word);
        }
    };
    std::unordered_map<std::string, std::int64_t, Hash, std::equal_to<>> counts_;
};

}  // namespace hetseq
