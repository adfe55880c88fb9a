#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ini_sections.hpp"

namespace hetseq {

/// Reads a section's values by key: each call takes one key and returns whether it was there.
/// All throw BadConfig that names the line.
class IniFields {
public:
    /// `section` outlives this.
    IniFields(const IniSection& section, const std::string& file)
        : section_{section}, file_{file} {}

    bool number(const std::string& key, double& value, double least, double most);
    bool integer(const std::string& key,
                 std::int64_t& value,
                 std::int64_t least,
                 std::int64_t most);
    bool text(const std::string& key, std::string& value);
    /// The index of the value among `choices`.
    bool choice(const std::string& key,
                std::size_t& value,
                const std::vector<std::string>& choices);
    /// Calls the function with each line of this key, the only key that may be repeated.
    bool each(const std::string& key, const std::function<void(const IniEntry&)>& take);

    /// To be called after all keys were read: rejects other keys and repeated ones.
    void finish() const;

    /// The line of `key`, or of the section's head.
    int line_of(const std::string& key) const;
    [[noreturn]] void reject(const std::string& key,
                             const std::string& problem,
                             const std::string& why = {},
                             const std::string& what_to_do = {}) const;

private:
    const IniEntry* find(const std::string& key);

    const IniSection& section_;
    const std::string& file_;
    std::vector<std::string> known_;
    std::vector<std::string> repeated_;
};

/// The words of a value, which blanks or commas separate.
std::vector<std::string> words_of(std::string value);

/// A whole number, or a decimal one that is finite, within limits. Throw BadConfig that names the
/// line of `entry`.
double to_number(const std::string& text,
                 const IniEntry& entry,
                 const std::string& file,
                 double least,
                 double most);
std::int64_t to_integer(const std::string& text,
                        const IniEntry& entry,
                        const std::string& file,
                        std::int64_t least,
                        std::int64_t most);

}  // namespace hetseq
