#pragma once

#include <string>
#include <vector>

#include <boost/program_options.hpp>

namespace hetseq {

/// A command's own options, and what is none of them under "word" (strings). Throws BadUsage with
/// `usage`.
boost::program_options::variables_map parse_command_words(
    boost::program_options::options_description options,
    const std::vector<std::string>& words,
    const std::string& usage);

}  // namespace hetseq
