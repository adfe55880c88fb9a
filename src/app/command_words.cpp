#include "command_words.hpp"

#include "hetseq/util/error.hpp"
#include "hetseq/util/text.hpp"

namespace hetseq {

namespace po = boost::program_options;

std::string reason_of(const po::error& error, const std::vector<std::string>& words) {
    for (const std::string& word : words)
        if (word.find('%') != std::string::npos)
            return "cannot read the options in '" + join(words, " ") + "'";
    return error.what();
}

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
        throw BadUsage(reason_of(error, words), "", usage);
    }
    return values;
}

}  // namespace hetseq
