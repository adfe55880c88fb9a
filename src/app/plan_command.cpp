#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "hetseq/util/error.hpp"
#include "hetseq/util/text.hpp"

#include "command_words.hpp"

#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/balance/cluster_file.hpp"
#include "hetseq/app/commands.hpp"
#include "hetseq/app/plan_report.hpp"
#include "hetseq/app/run_measurements.hpp"

namespace hetseq {

namespace {

namespace po = boost::program_options;

constexpr const char* usage = "hetseq plan CLUSTER.cfg [--json] [--from RUN[,RUN...]]";
constexpr std::size_t longest_description = 1 << 20;  // bytes

struct Words {
    std::string description;
    std::vector<std::string> runs;
    bool json = false;
};

Words read_words(const std::vector<std::string>& words) {
    po::options_description known;
    known.add_options()("from", po::value<std::string>())("json", po::bool_switch());
    const po::variables_map values = parse_command_words(known, words, usage);
    if (values.count("word") == 0 || values["word"].as<std::vector<std::string>>().size() != 1)
        throw BadUsage("one description of a cluster is needed", "", usage);
    Words result{
        values["word"].as<std::vector<std::string>>().front(), {}, values["json"].as<bool>()};
    if (values.count("from") > 0)
        result.runs = split(values["from"].as<std::string>(), ',');
    return result;
}

std::string read_description(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::string text(longest_description + 1, '\0');
    if (!file || !(file.read(text.data(), static_cast<std::streamsize>(text.size())) || file.eof()))
        throw MissingInput("cannot read the description " + path,
                           "no such file, or not readable",
                           "check the path");
    text.resize(static_cast<std::size_t>(file.gcount()));
    if (text.size() > longest_description)
        throw BadConfig(path + " is longer than 1 MiB", "", "is this the right file?");
    return text;
}

PlanReport make_report(const Words& words) {
    PlanReport report;
    report.cluster = parse_cluster(read_description(words.description), words.description);
    report.taken = fill_from_cost_files(report.cluster,
                                        std::filesystem::path(words.description).parent_path());
    std::vector<MeasuredRun> runs;
    for (const std::string& folder : words.runs)
        runs.push_back(read_measured_run(folder));
    if (!runs.empty())
        for (std::string& note : fill_from_runs(report.cluster, runs))
            report.taken.push_back(std::move(note));
    require_complete(report.cluster);
    if (!report.cluster.rows.empty()) {
        report.fit = fit_cluster(report.cluster);
        report.cluster = report.fit->cluster;
    }
    report.plan = plan_cluster(report.cluster);
    return report;
}

}  // namespace

int plan_command(const CommandContext& context) {
    const Words words = agree_on(context.world, [&] { return read_words(context.words); });
    const PlanReport report = agree_on(context.world, [&] { return make_report(words); });
    if (context.world.rank() == 0)
        std::fputs((words.json ? plan_json(report) : plan_text(report)).c_str(), stdout);
    return 0;
}

}  // namespace hetseq
