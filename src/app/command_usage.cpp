#include "hetseq/app/command_usage.hpp"

#include <cctype>
#include <sstream>

#include "hetseq/util/text.hpp"

namespace hetseq {

namespace {

bool starts_in_upper_case(const std::string& word) {
    return !word.empty() && std::isupper(static_cast<unsigned char>(word.front()));
}

// "RUN[,RUN...]" repeats what stands before it.
std::string without_repeats(std::string usage) {
    for (auto at = usage.find("[,"); at != std::string::npos; at = usage.find("[,"))
        usage.erase(at, usage.find(']', at) + 1 - at);
    return usage;
}

// Brackets become words of their own; commas and dots at a word's end go.
std::vector<std::string> words_of(const std::string& usage) {
    std::string spaced;
    for (char c : without_repeats(usage)) {
        const bool bracket = c == '[' || c == ']';
        spaced += bracket ? std::string{' ', c, ' '} : std::string{c};
    }
    std::vector<std::string> words;
    std::istringstream stream(spaced);
    for (std::string word; stream >> word;) {
        while (!word.empty() && (word.back() == ',' || word.back() == '.'))
            word.pop_back();
        if (!word.empty())
            words.push_back(word);
    }
    return words;
}

bool is_option(const std::string& word) {
    return word.rfind("--", 0) == 0;
}

bool is_mark(const std::string& word) {
    return word == "[" || word == "]" || word == "|";
}

}  // namespace

CommandUsage read_usage(const std::string& usage) {
    const std::vector<std::string> words = words_of(usage);
    CommandUsage result;
    for (std::size_t i = 1; i < words.size(); ++i) {
        const std::string& word = words[i];
        if (is_mark(word))
            continue;
        if (is_option(word)) {
            const bool has_value =
                i + 1 < words.size() && !is_mark(words[i + 1]) && !is_option(words[i + 1]);
            if (!starts_in_upper_case(word.substr(2)))
                result.options.push_back({word, has_value ? words[i + 1] : ""});
            i += has_value ? 1 : 0;
        } else if (starts_in_upper_case(word)) {
            result.arguments.push_back(word);
        } else {
            result.words = split(word, '|');
        }
    }
    return result;
}

ValueKind value_kind(const std::string& name) {
    if (name.ends_with(".cfg"))
        return ValueKind::configuration;
    for (const std::string& part : split(name, '|')) {
        if (part == "DIR" || part == "RUN")
            return ValueKind::folder;
        if (part == "PATH" || part == "FILE" || part.ends_with(".json") || part == "IDX")
            return ValueKind::file;
    }
    return ValueKind::any;
}

}  // namespace hetseq
