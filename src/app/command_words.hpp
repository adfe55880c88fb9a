#pragma once

#include <string>
#include <vector>

#include <boost/program_options.hpp>

namespace hetseq {

/// Why Boost refuses `words`. Its own text where that ends: Boost looks for its placeholders
/// (%value%) in what it has put in their place, for ever.
std::string reason_of(const boost::program_options::error& error,
                      const std::vector<std::string>& words);

/// A command's own options, and what is none of them under "word" (strings). Throws BadUsage with
/// `usage`.
boost::program_options::variables_map parse_command_words(
    boost::program_options::options_description options,
    const std::vector<std::string>& words,
    const std::string& usage);

}  // namespace hetseq
