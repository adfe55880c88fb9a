#include "hetseq/util/text.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <utility>

namespace hetseq {

namespace {

// The fewest insertions, deletions, substitutions and swaps of neighbours that make `b` of `a`.
std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> before;  // of a's first i - 2 letters to b's first j
    std::vector<std::size_t> last(b.size() + 1);
    std::iota(last.begin(), last.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::vector<std::size_t> row(b.size() + 1, i);
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t substituted = last[j - 1] + (a[i - 1] != b[j - 1] ? 1 : 0);
            row[j] = std::min({last[j] + 1, row[j - 1] + 1, substituted});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = std::min(row[j], before[j - 2] + 1);
        }
        before = std::exchange(last, std::move(row));
    }
    return last.back();
}

// One letter in four, at most three: more changes make another word.
std::size_t largest_misspelling(std::string_view name) {
    return std::clamp<std::size_t>(name.size() / 4, 1, 3);
}

std::string_view trimmed(std::string_view text) {
    const auto begin = text.find_first_not_of(" \t\r\n");
    if (begin == std::string_view::npos)
        return {};
    return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

constexpr double least_grouped = 1e4;
constexpr double most_grouped = 1e15;  // beyond this, an exponent reads better

// "92,780" from "92780".
std::string grouped(std::string number) {
    const std::size_t begin = number.front() == '-' ? 1 : 0;
    const std::size_t end = std::min(number.find('.'), number.size());
    for (std::size_t at = end; at > begin + 3;)
        number.insert(at -= 3, ",");
    return number;
}

// The words in lower case; anything but letters and digits separates them.
std::vector<std::string> words_of(std::string_view text) {
    std::vector<std::string> words(1);
    for (const char c : to_lower(text)) {
        if (std::isalnum(static_cast<unsigned char>(c)) != 0)
            words.back() += c;
        else if (!words.back().empty())
            words.emplace_back();
    }
    return words;
}

}  // namespace

std::string nearest_name(std::string_view name, std::span<const std::string> candidates) {
    std::string nearest;
    std::size_t least = largest_misspelling(name) + 1;
    for (const std::string& candidate : candidates) {
        const std::size_t distance = edit_distance(name, candidate);
        if (distance < least) {
            least = distance;
            nearest = candidate;
        }
    }
    return nearest;
}

std::string suggestion(std::string_view name, std::span<const std::string> candidates) {
    const std::string nearest = nearest_name(name, candidates);
    if (!nearest.empty())
        return "Did you mean " + nearest + "?";
    return "Known: " + join(candidates, ", ") + ".";
}

std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> parts;
    if (trimmed(text).empty())
        return parts;
    std::size_t begin = 0;
    while (begin <= text.size()) {
        const std::size_t end = std::min(text.find(separator, begin), text.size());
        parts.emplace_back(trimmed(text.substr(begin, end - begin)));
        begin = end + 1;
    }
    return parts;
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
    std::string text;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        if (i > 0)
            text += separator;
        text += parts[i];
    }
    return text;
}

std::string to_lower(std::string_view text) {
    std::string lower(text);
    std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) {
        return static_cast<char>(std::tolower(c));
    });
    return lower;
}

bool holds_words(std::string_view text, std::string_view key) {
    const std::string wanted = join(words_of(key), "");
    const std::vector<std::string> words = words_of(text);
    for (std::size_t begin = 0; begin < words.size(); ++begin) {
        std::string run;
        for (std::size_t end = begin; end < words.size() && run.size() < wanted.size(); ++end)
            run += words[end];
        if (!run.empty() && run == wanted)
            return true;
    }
    return false;
}

std::string format_duration(double seconds) {
    const auto total = static_cast<long long>(std::llround(std::max(seconds, 0.0)));
    char text[32];
    if (total >= 3600)
        std::snprintf(
            text, sizeof text, "%lld:%02lld:%02lld", total / 3600, total / 60 % 60, total % 60);
    else
        std::snprintf(text, sizeof text, "%lld:%02lld", total / 60, total % 60);
    return text;
}

std::string format_number(double value, int digits) {
    char text[40];
    std::snprintf(text, sizeof text, "%.*g", digits, value);
    const double shown = std::strtod(text, nullptr);
    const double size = std::abs(shown);
    const bool has_exponent = std::strchr(text, 'e') != nullptr;
    if (!(size < most_grouped) || (has_exponent && size < 1))
        return text;
    if (has_exponent)
        std::snprintf(text, sizeof text, "%.0f", shown);
    return size >= least_grouped ? grouped(text) : text;
}

std::string wrapped(std::string_view text, std::size_t columns, std::size_t taken) {
    constexpr std::string_view indent = "    ";
    std::string result;
    std::size_t used = taken;  // columns of the line at work
    bool has_word = taken > 0;
    std::size_t begin = 0;
    while (begin < text.size()) {
        // Blanks and the word behind them, or a line's end.
        const std::size_t word = std::min(text.find_first_not_of(' ', begin), text.size());
        std::size_t end = std::min(text.find_first_of(" \n", word), text.size());
        if (word < text.size() && text[word] == '\n') {
            end = word + 1;
            used = 0;
            has_word = false;
        } else if (used + end - begin > columns && has_word && word > begin) {
            result += '\n' + std::string(indent);
            used = indent.size() + end - word;
            begin = word;
        } else {
            used += end - begin;
            has_word = true;
        }
        result += text.substr(begin, end - begin);
        begin = end;
    }
    return result;
}

std::string format_table(std::span<const std::vector<std::string>> rows) {
    std::vector<std::size_t> widths;
    for (const auto& row : rows) {
        widths.resize(std::max(widths.size(), row.size()), 0);
        for (std::size_t i = 0; i < row.size(); ++i)
            widths[i] = std::max(widths[i], row[i].size());
    }
    std::string text;
    for (const auto& row : rows) {
        std::string line;
        for (std::size_t i = 0; i < row.size(); ++i)
            line +=
                row[i] + std::string(i + 1 < row.size() ? widths[i] - row[i].size() + 2 : 0, ' ');
        text += line + "\n";
    }
    return text;
}

}  // namespace hetseq
