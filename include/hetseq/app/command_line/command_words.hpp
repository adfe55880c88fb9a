#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "hetseq/session/options.hpp"
#include "hetseq/app/command_line/command_description.hpp"

namespace hetseq {

/// The words of one call, sorted as its form describes them.
struct CommandWords {
    std::string form;  // its word: "images"
    std::vector<std::string> arguments;
    OptionValues options;  // given ones of the option table
    OptionValues own;      // the form's own options, given or by default

    bool has(const std::string& own_switch) const;
    const std::string& text(const std::string& own_option) const;
    /// Throws BadConfig for anything but a whole number in this range.
    std::int64_t whole_number(const std::string& own_option,
                              std::int64_t minimum,
                              std::int64_t maximum) const;
    /// Throws BadConfig for anything but a number in this range.
    double number(const std::string& own_option, double minimum, double maximum) const;
    /// Throws BadConfig for anything but one of these.
    const std::string& choice(const std::string& own_option,
                              const std::vector<std::string>& allowed) const;
};

/// Sorts the words that follow a command's name. Throws BadUsage for a word, and BadConfig for an
/// option, that the command does not take, or that is missing, with the usage or the nearest name.
/// Warns of an option with several values. `table` has the parts' own options too.
CommandWords parse_command_words(const CommandDescription& command,
                                 const std::vector<std::string>& words,
                                 const OptionTable& table = option_table());

}  // namespace hetseq
