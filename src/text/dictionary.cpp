#include "hetseq/text/dictionary.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>
#include <vector>

#include "hetseq/util/error.hpp"
#include "hetseq/util/plain_text.hpp"
#include "hetseq/text/utf8.hpp"

#include "vocabulary_kind.hpp"

namespace hetseq {

namespace {

// The first line; the mark of words that go on in the next one may follow.
constexpr std::string_view first_line = "# hetseq dictionary 1";
constexpr std::string_view mark_word = " continued ";
constexpr std::string_view subword_nmt_mark = "@@";
constexpr std::string_view special_words[] = {"<unk>", "<s>", "</s>"};
constexpr std::size_t special_count = std::size(special_words);
constexpr std::int64_t most_words = 4'000'000;  // 4 s and 0.5 GiB

bool is_space(char c) noexcept {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

bool is_special(std::string_view word) noexcept {
    return std::find(std::begin(special_words), std::end(special_words), word) !=
           std::end(special_words);
}

// "word 12" -> ("word", 12); nothing where the line is not of this form.
std::optional<std::pair<std::string_view, std::int64_t>> word_and_count(std::string_view line) {
    const std::size_t blank = line.rfind(' ');
    if (blank == std::string_view::npos || blank == 0)
        return std::nullopt;
    const std::string_view word = line.substr(0, blank);
    const std::string_view digits = line.substr(blank + 1);
    std::int64_t count = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
    if (error != std::errc() || end != digits.data() + digits.size() || count < 0 ||
        std::any_of(word.begin(), word.end(), is_space))
        return std::nullopt;
    return std::pair{word, count};
}

class Dictionary final : public VocabularyKind {
public:
    Dictionary(std::string_view bytes, const std::string& origin) {
        bytes = without_byte_order_mark(bytes);
        const auto lines = std::count(bytes.begin(), bytes.end(), '\n');
        if (lines > most_words)
            throw BadData(origin + " has " + std::to_string(lines) + " lines",
                          "a dictionary has at most " + std::to_string(most_words) + " words",
                          "leave rare words out, for example by --vocab-size");
        words_.reserve(static_cast<std::size_t>(lines) + special_count);
        ids_.reserve(static_cast<std::size_t>(lines));
        for (const std::string_view word : special_words)
            words_.push_back(word);
        read_mark(take_line(bytes), origin);
        for (std::int64_t line = 2; !bytes.empty(); ++line)
            read_word(take_line(bytes), [&] { return origin + ", line " + std::to_string(line); });
    }

    std::int64_t size() const override { return std::ssize(words_); }

    void encode(std::string_view line, std::vector<std::int32_t>& ids) const override {
        for_each_word(line, [&](std::string_view word) {
            const auto found = ids_.find(word);
            ids.push_back(found == ids_.end() ? 0 : found->second);
        });
    }

    std::string decode(const std::vector<std::int32_t>& ids) const override {
        std::string text;
        for (std::size_t i = 0; i < ids.size(); ++i) {
            const std::string_view word = words_[static_cast<std::size_t>(ids[i])];
            const bool is_last = i + 1 == ids.size();
            const bool goes_on = !mark_.empty() && word.ends_with(mark_);
            text += goes_on ? word.substr(0, word.size() - mark_.size()) : word;
            if (!goes_on && !is_last)
                text += ' ';
        }
        return text;
    }

    std::string piece(std::int32_t id) const override {
        return std::string(words_[static_cast<std::size_t>(id)]);
    }

private:
    void read_mark(std::string_view line, const std::string& origin) {
        std::string_view rest = line.substr(first_line.size());
        if (rest.starts_with(mark_word)) {
            mark_ = rest.substr(mark_word.size());
            rest = {};
        }
        const bool is_good = valid_utf8_bytes(mark_) == mark_.size() &&
                             std::none_of(mark_.begin(), mark_.end(), is_space);
        if (!rest.empty() || !is_good)
            throw BadData(origin + " is of another version of dictionaries",
                          "its first line is '" + std::string(line.substr(0, 80)) + "'",
                          "prepare the data with this version of hetseq");
    }

    template <class Place>
    void read_word(std::string_view line, const Place& place) {
        if (valid_utf8_bytes(line) != line.size())
            throw BadData(place() + " is not UTF-8", "", "convert the dictionary to UTF-8");
        check_line_end(line, place);
        const auto entry = word_and_count(line);
        if (!entry)
            throw BadData(place() + " is not a word and its count",
                          "found '" + std::string(line.substr(0, 80)) + "'",
                          "write one word, a blank and its count in each line");
        const auto id = static_cast<std::int32_t>(words_.size());
        if (is_special(entry->first) || !ids_.emplace(entry->first, id).second)
            throw BadData(place() + " repeats a word",
                          "'" + std::string(entry->first) + "' is in the dictionary already",
                          "remove the line");
        words_.push_back(entry->first);
    }

    std::string_view mark_;
    std::vector<std::string_view> words_;  // by id
    std::unordered_map<std::string_view, std::int32_t> ids_;
};

}  // namespace

bool is_dictionary(std::string_view bytes) noexcept {
    return without_byte_order_mark(bytes).starts_with(first_line);
}

std::unique_ptr<const VocabularyKind> make_dictionary(std::string_view bytes,
                                                      const std::string& origin) {
    return std::make_unique<Dictionary>(bytes, origin);
}

void for_each_word(std::string_view line, const std::function<void(std::string_view)>& take) {
    std::size_t at = 0;
    while (at < line.size()) {
        const std::size_t begin = at;
        while (at < line.size() && !is_space(line[at]))
            ++at;
        if (at > begin)
            take(line.substr(begin, at - begin));
        else
            ++at;
    }
}

void WordCounts::add_line(std::string_view line) {
    for_each_word(line, [this](std::string_view word) { add(word, 1); });
}

void WordCounts::add(std::string_view word, std::int64_t count) {
    const auto found = counts_.find(word);
    if (found != counts_.end())
        found->second += count;
    else if (!is_special(word))
        counts_.emplace(word, count);
}

std::string WordCounts::text() const {
    std::string text;
    for (const auto& [word, count] : counts_)
        text.append(word).append(" ").append(std::to_string(count)).append("\n");
    return text;
}

void WordCounts::add_text(std::string_view text) {
    while (!text.empty()) {
        const auto entry = word_and_count(take_line(text));
        HETSEQ_ASSERT(entry);
        add(entry->first, entry->second);
    }
}

std::string WordCounts::dictionary(std::int64_t most_ids) const {
    std::vector<std::pair<std::string_view, std::int64_t>> sorted(counts_.begin(), counts_.end());
    std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
        return a.second != b.second ? a.second > b.second : a.first < b.first;
    });
    const auto most = static_cast<std::size_t>(most_ids);
    if (most_ids > 0 && sorted.size() + special_count > most)
        sorted.resize(most - std::min(most, special_count));
    const bool goes_on = std::any_of(sorted.begin(), sorted.end(), [](const auto& entry) {
        return entry.first.ends_with(subword_nmt_mark);
    });
    std::string bytes{first_line};
    if (goes_on)
        bytes.append(mark_word).append(subword_nmt_mark);
    bytes += '\n';
    for (const auto& [word, count] : sorted)
        bytes.append(word).append(" ").append(std::to_string(count)).append("\n");
    return bytes;
}

}  // namespace hetseq
