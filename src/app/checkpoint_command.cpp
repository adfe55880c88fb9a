#include <algorithm>
#include <cstdio>

#include "hetseq/util/error.hpp"
#include "hetseq/util/text.hpp"

#include "command_words.hpp"

#include "hetseq/app/checkpoint_report.hpp"
#include "hetseq/app/commands.hpp"

namespace hetseq {

namespace {

namespace po = boost::program_options;

constexpr const char* usage =
    "hetseq checkpoint list|verify|inspect|average RUN [--json] [--last N] [--output FILE]";

struct Words {
    std::string action;
    std::string path;
    std::string output;
    int last = 0;  // checkpoints to average; 0: all
    bool json = false;
};

Words read_words(const std::vector<std::string>& words) {
    po::options_description known;
    known.add_options()("json", po::bool_switch())("last", po::value<int>()->default_value(0))(
        "output", po::value<std::string>()->default_value(""));
    const po::variables_map values = parse_command_words(known, words, usage);
    if (values.count("word") == 0 || values["word"].as<std::vector<std::string>>().size() != 2)
        throw BadUsage("an action and a run are needed", "", usage);
    const auto given = values["word"].as<std::vector<std::string>>();
    Words result{given[0],
                 given[1],
                 values["output"].as<std::string>(),
                 values["last"].as<int>(),
                 values["json"].as<bool>()};
    const std::vector<std::string> actions{"list", "verify", "inspect", "average"};
    if (std::find(actions.begin(), actions.end(), result.action) == actions.end())
        throw BadUsage("'" + result.action + "' is nothing to do with checkpoints",
                       "",
                       suggestion(result.action, actions));
    if (result.last < 0)
        throw BadUsage(
            "--last " + std::to_string(result.last) + " is less than nothing", "", usage);
    if (result.action == "average" && result.output.empty())
        throw BadUsage("--output says where the average goes", "", usage);
    return result;
}

void say(const std::string& text) {
    std::fputs(text.c_str(), stdout);
}

}  // namespace

int checkpoint_command(const CommandContext& context) {
    const Words words = read_words(context.words);
    std::vector<std::filesystem::path> checkpoints = checkpoints_of(words.path);
    if (words.last > 0 && static_cast<std::size_t>(words.last) < checkpoints.size())
        checkpoints.resize(static_cast<std::size_t>(words.last));
    int damaged = 0;
    if (words.action == "list")
        say(list_checkpoints(checkpoints, words.json));
    else if (words.action == "verify")
        say(verify_checkpoints(checkpoints, damaged));
    else if (words.action == "inspect")
        say(inspect_checkpoint(checkpoints.front()));
    else {
        average_checkpoints(checkpoints, words.output);
        say(words.output + ": the mean of " + std::to_string(checkpoints.size()) +
            " checkpoints\n");
    }
    return damaged > 0 ? static_cast<int>(ExitCode::bad_data) : 0;
}

}  // namespace hetseq
