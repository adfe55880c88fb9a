#pragma once

#include <string>

#include "hetseq/session/options/options.hpp"

namespace hetseq {

/// `values` as config.cfg holds them, so that it repeats the run from any folder: relative paths
/// are made absolute. A path stays relative if the current folder's name holds a character that
/// such a value cannot hold (',', '#', or a glob's '*', '?', '[').
OptionValues config_file_values(OptionValues values, const OptionTable& table = option_table());

/// Whether the two texts name the same file, or are the same.
bool names_same_file(const std::string& a, const std::string& b);

}  // namespace hetseq
