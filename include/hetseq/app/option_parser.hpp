#pragma once

#include <string>
#include <vector>

#include "hetseq/app/options.hpp"

namespace hetseq {

/// Options as given, and the words that are none.
struct ParsedOptions {
    OptionValues values;  // given ones only
    std::vector<std::string> positionals;
};

/// Parses words of a command line. Throws BadUsage that names the nearest option for an unknown
/// one.
ParsedOptions parse_command_line(const std::vector<std::string>& words);

/// Parses an INI file of options (`name = value`, `#` comments). Throws MissingInput, BadConfig
/// that name the file.
OptionValues parse_config_file(const std::string& path);

/// Options by where they stand.
struct GivenOptions {
    OptionValues line;  // the command line
    OptionValues file;  // the configuration
};

/// Parses a command line that may name one configuration, and that. Throws as the two above.
GivenOptions parse_with_config(const std::vector<std::string>& words);

/// The text of config.cfg: every option but those of the command, with `values`.
std::string config_text(const OptionValues& values);

/// The options' part of `hetseq train --help`.
std::string options_help();

}  // namespace hetseq
