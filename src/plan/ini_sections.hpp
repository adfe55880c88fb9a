#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hetseq {

/// A line `key = value`.
struct IniEntry {
    int line = 0;
    std::string key;
    std::string value;
};

/// `[kind]` or `[kind name]`, and the lines below it.
struct IniSection {
    int line = 0;
    std::string kind;
    std::string name;
    std::vector<IniEntry> entries;

    /// The title as it stands in the file.
    std::string title() const { return "[" + kind + (name.empty() ? "" : " " + name) + "]"; }
};

/// Throws BadConfig: `file` line N: problem (why): what to do.
[[noreturn]] void reject_line(const std::string& file,
                              int line,
                              const std::string& problem,
                              const std::string& why = {},
                              const std::string& what_to_do = {});

/// Splits `text` into sections; `#` and `;` begin comments. Throws BadConfig that names the line.
std::vector<IniSection> parse_ini(std::string_view text, const std::string& file);

}  // namespace hetseq
