#pragma once

#include <string>
#include <vector>

#include "hetseq/options/option_spec.hpp"
#include "hetseq/options/options_of.hpp"
#include "hetseq/command_line/command_description.hpp"

namespace hetseq {

/// The words of one call, sorted as its form describes them.
struct CommandWords {
    std::string form;  // its word: "images"
    std::vector<std::string> arguments;
    OptionValues options;  // given ones of the option table
    OptionValues own;      // the form's own options, given or by default

    /// The form's own options as the settings that they are. Throws BadConfig that names the
    /// option.
    template <class S>
    S read(const OptionsOf<S>& own_options) const {
        return own_options.read(own);
    }
};

/// Sorts the words that follow a command's name. Throws BadUsage for a word, and BadConfig for an
/// option, that the command does not take, or that is missing, with the usage or the nearest name.
/// Warns of an option with several values. `table`: the options of runs, those of parts among
/// them.
CommandWords parse_command_words(const CommandDescription& command,
                                 const std::vector<std::string>& words,
                                 const OptionTable& table = {});

}  // namespace hetseq
