#include "ini_sections.hpp"

#include <algorithm>
#include <cctype>

#include "hetseq/util/error.hpp"
#include "hetseq/util/plain_text.hpp"
#include "hetseq/util/text.hpp"

namespace hetseq {

namespace {

constexpr std::size_t longest_line = 4096;
constexpr std::size_t most_sections = 1000;

bool is_word(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
        return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
    });
}

// The words between blanks.
std::vector<std::string> words_of(std::string_view text) {
    std::vector<std::string> words;
    for (std::string& word : split(text, ' '))
        if (!word.empty())
            words.push_back(std::move(word));
    return words;
}

// The text before a comment, without the blanks around it.
std::string content_of(std::string_view line) {
    const auto parts = split(line.substr(0, line.find_first_of("#;")), '\n');
    return parts.empty() ? std::string() : parts.front();
}

IniSection parse_head(const std::string& content, const std::string& file, int line) {
    const auto words = content.back() == ']'
                           ? words_of(std::string_view(content).substr(1, content.size() - 2))
                           : std::vector<std::string>();
    if (words.empty() || words.size() > 2 || !std::all_of(words.begin(), words.end(), is_word))
        reject_line(file,
                    line,
                    "cannot read '" + content + "'",
                    "a section is [KIND] or [KIND NAME], names of letters, digits, '-', '_', '.'");
    return {line, words[0], words.size() > 1 ? words[1] : "", {}};
}

IniEntry parse_entry(const std::string& content, const std::string& file, int line) {
    const auto equals = content.find('=');
    if (equals == std::string::npos)
        reject_line(file, line, "cannot read '" + content + "'", "a line is 'key = value'");
    const auto trim = [](std::string_view text) { return content_of(text); };
    IniEntry entry{line,
                   trim(std::string_view(content).substr(0, equals)),
                   trim(std::string_view(content).substr(equals + 1))};
    if (!is_word(entry.key))
        reject_line(file, line, "cannot read '" + content + "'", "a line is 'key = value'");
    if (entry.value.empty())
        reject_line(
            file, line, "'" + entry.key + "' has no value", "", "give one or remove the line");
    return entry;
}

}  // namespace

void reject_line(const std::string& file,
                 int line,
                 const std::string& problem,
                 const std::string& why,
                 const std::string& what_to_do) {
    throw BadConfig(file + " line " + std::to_string(line) + ": " + problem, why, what_to_do);
}

std::vector<IniSection> parse_ini(std::string_view text, const std::string& file) {
    std::vector<IniSection> sections;
    int line = 0;
    if (const auto fault = encoding_fault(text, file))
        throw BadConfig(fault->problem, fault->why, fault->what_to_do);
    text = without_byte_order_mark(text);
    while (!text.empty()) {
        ++line;
        const std::string_view read = take_line(text);
        if (read.size() > longest_line)
            reject_line(file,
                        line,
                        "the line is longer than 4096 bytes",
                        "",
                        "check that it is the right file");
        if (holds_carriage_return(read)) {
            const Explanation fault = carriage_return_fault(file + " line " + std::to_string(line));
            throw BadConfig(fault.problem, fault.why, fault.what_to_do);
        }
        const std::string content = content_of(read);
        if (content.empty())
            continue;
        if (content.front() == '[')
            sections.push_back(parse_head(content, file, line));
        else if (sections.empty())
            reject_line(
                file, line, "'" + content + "' stands before any section", "", "begin with [job]");
        else
            sections.back().entries.push_back(parse_entry(content, file, line));
        if (sections.size() > most_sections)
            reject_line(file,
                        line,
                        "more than 1000 sections",
                        "",
                        "describe like nodes once, with 'count'");
    }
    return sections;
}

}  // namespace hetseq
