#include "command_words.hpp"

#include "hetseq/util/error.hpp"

namespace hetseq {

namespace po = boost::program_options;

po::variables_map parse_command_words(po::options_description options,
                                      const std::vector<std::string>& words,
                                      const std::string& usage) {
    options.add_options()("word", po::value<std::vector<std::string>>());
    po::positional_options_description positional;
    positional.add("word", -1);
    po::variables_map values;
    try {
        po::store(po::command_line_parser(words).options(options).positional(positional).run(),
                  values);
        po::notify(values);
    } catch (const po::error& error) {
        throw BadUsage(error.what(), "", usage);
    }
    return values;
}

}  // namespace hetseq
