#pragma once

#include <string>

#include "hetseq/options/option_spec.hpp"
#include "hetseq/command_line/command_words.hpp"

namespace hetseq {

/// Parses an INI file of options (`name = value`, `#` comments). Throws MissingInput, BadConfig
/// that name the file, and the nearest option for an unknown one. Warns of an option with several
/// values.
OptionValues parse_config_file(const std::string& path, const OptionTable& table);

/// The same of a run's config.cfg whose task may have options of its own: those that `table` lacks
/// are left out.
OptionValues parse_known_options(const std::string& path, const OptionTable& table);

/// The options of a call, and those of the configuration that its first argument names. Says which
/// of these the call replaces. Throws as above.
GivenOptions given_options(const CommandWords& words, const OptionTable& table);

/// The text of config.cfg: every option of `table` but those of the command, with `values`.
std::string config_text(const OptionValues& values, const OptionTable& table);

}  // namespace hetseq
