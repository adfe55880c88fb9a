#include <cstdio>
#include <string>
#include <vector>

#include "hetseq/report/page.hpp"
#include "hetseq/report/run_record.hpp"
#include "hetseq/util/atomic_file.hpp"
#include "hetseq/util/error.hpp"
#include "hetseq/util/log.hpp"

#include "command_words.hpp"

#include "hetseq/app/commands.hpp"

namespace hetseq {

namespace {

namespace po = boost::program_options;

constexpr const char* usage = "hetseq report RUN... [--output FILE]";

struct Words {
    std::vector<std::string> runs;
    std::string output;
};

Words read_words(const std::vector<std::string>& words) {
    po::options_description known;
    known.add_options()("output", po::value<std::string>()->default_value("report.html"));
    const po::variables_map values = parse_command_words(known, words, usage);
    if (values.count("word") == 0)
        throw BadUsage("no run was given", "", usage);
    return {values["word"].as<std::vector<std::string>>(), values["output"].as<std::string>()};
}

}  // namespace

int report_command(const CommandContext& context) {
    const Words words = read_words(context.words);
    std::vector<RunRecord> runs;
    for (const std::string& folder : words.runs) {
        runs.push_back(read_run(folder));
        for (const std::string& sentence : runs.back().missing)
            log::warn(folder + ": " + sentence);
    }
    write_atomically(words.output, report_page(runs));
    std::printf("%s\n", words.output.c_str());
    return 0;
}

}  // namespace hetseq
