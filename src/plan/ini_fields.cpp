#include "ini_fields.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "hetseq/util/text.hpp"

namespace hetseq {

namespace {

template <class Number>
Number convert(const std::string& text,
               const IniEntry& entry,
               const std::string& file,
               Number least,
               Number most,
               const std::string& kind) {
    Number value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = error == std::errc() && end == text.data() + text.size();
    // A NaN is within no limits.
    if (!whole || !(value >= least && value <= most))
        reject_line(file,
                    entry.line,
                    entry.key + ": '" + text + "' is not " + kind + " from " +
                        format_number(static_cast<double>(least), 7) + " to " +
                        format_number(static_cast<double>(most), 7));
    return value;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::vector<std::string> words_of(std::string value) {
    std::replace(value.begin(), value.end(), ',', ' ');
    std::replace(value.begin(), value.end(), '\t', ' ');
    std::vector<std::string> words;
    for (std::string& word : split(value, ' '))
        if (!word.empty())
            words.push_back(std::move(word));
    return words;
}

double to_number(const std::string& text,
                 const IniEntry& entry,
                 const std::string& file,
                 double least,
                 double most) {
    return convert(text, entry, file, least, most, "a number");
}

std::int64_t to_integer(const std::string& text,
                        const IniEntry& entry,
                        const std::string& file,
                        std::int64_t least,
                        std::int64_t most) {
    return convert(text, entry, file, least, most, "a whole number");
}

const IniEntry* IniFields::find(const std::string& key) {
    known_.push_back(key);
    const auto& entries = section_.entries;
    const auto found = std::find_if(
        entries.begin(), entries.end(), [&](const IniEntry& entry) { return entry.key == key; });
    return found == entries.end() ? nullptr : &*found;
}

bool IniFields::number(const std::string& key, double& value, double least, double most) {
    const IniEntry* entry = find(key);
    if (entry != nullptr)
        value = to_number(entry->value, *entry, file_, least, most);
    return entry != nullptr;
}

bool IniFields::integer(const std::string& key,
                        std::int64_t& value,
                        std::int64_t least,
                        std::int64_t most) {
    const IniEntry* entry = find(key);
    if (entry != nullptr)
        value = to_integer(entry->value, *entry, file_, least, most);
    return entry != nullptr;
}

bool IniFields::text(const std::string& key, std::string& value) {
    const IniEntry* entry = find(key);
    if (entry != nullptr)
        value = entry->value;
    return entry != nullptr;
}

bool IniFields::choice(const std::string& key,
                       std::size_t& value,
                       const std::vector<std::string>& choices) {
    const IniEntry* entry = find(key);
    if (entry == nullptr)
        return false;
    const auto found = std::find(choices.begin(), choices.end(), entry->value);
    if (found == choices.end())
        reject(key, key + ": '" + entry->value + "' is not one of " + join(choices, ", "));
    value = static_cast<std::size_t>(found - choices.begin());
    return true;
}

bool IniFields::each(const std::string& key, const std::function<void(const IniEntry&)>& take) {
    const bool found = find(key) != nullptr;
    repeated_.push_back(key);
    for (const IniEntry& entry : section_.entries)
        if (entry.key == key)
            take(entry);
    return found;
}

void IniFields::finish() const {
    std::vector<std::string> seen;
    for (const IniEntry& entry : section_.entries) {
        if (!contains(known_, entry.key))
            reject_line(file_,
                        entry.line,
                        "unknown key '" + entry.key + "' in " + section_.title(),
                        "",
                        suggestion(entry.key, known_));
        if (contains(seen, entry.key) && !contains(repeated_, entry.key))
            reject_line(file_,
                        entry.line,
                        "'" + entry.key + "' is given twice in " + section_.title(),
                        "it takes one value",
                        "remove one");
        seen.push_back(entry.key);
    }
}

int IniFields::line_of(const std::string& key) const {
    for (const IniEntry& entry : section_.entries)
        if (entry.key == key)
            return entry.line;
    return section_.line;
}

void IniFields::reject(const std::string& key,
                       const std::string& problem,
                       const std::string& why,
                       const std::string& what_to_do) const {
    reject_line(file_, line_of(key), problem, why, what_to_do);
}

}  // namespace hetseq
