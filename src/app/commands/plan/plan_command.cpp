#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "hetseq/util/error.hpp"
#include "hetseq/util/files/regular_file.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/plan/cluster_file.hpp"
#include "hetseq/plan/layout/cluster_layouts.hpp"
#include "hetseq/plan/layout/layer_times.hpp"
#include "hetseq/session/options/part_option_table.hpp"
#include "hetseq/app/commands.hpp"
#include "hetseq/app/commands/plan/run_measurements.hpp"

#include "app/commands/command_options.hpp"
#include "plan_report.hpp"

namespace hetseq {

namespace {

constexpr std::size_t longest_description = 1 << 20;  // bytes

std::string read_description(const std::string& path) {
    check_text_file(path);
    std::ifstream file(path, std::ios::binary);
    std::string text(longest_description + 1, '\0');
    if (!file || !(file.read(text.data(), static_cast<std::streamsize>(text.size())) || file.eof()))
        throw MissingInput("cannot read the description " + path,
                           "it does not exist or cannot be read",
                           "check the path");
    text.resize(static_cast<std::size_t>(file.gcount()));
    if (text.size() > longest_description)
        throw BadConfig(path + " is longer than 1 MiB", "", "check that it is the right file");
    return text;
}

PlanReport make_report(const CommandWords& words, const Parts& parts) {
    const std::string& description = words.arguments.front();
    PlanReport report;
    report.cluster = parse_cluster(read_description(description), description);
    report.taken =
        fill_from_cost_files(report.cluster, std::filesystem::path(description).parent_path());
    std::vector<MeasuredRun> runs;
    for (const std::string& folder : words.read(plan_options()).runs)
        runs.push_back(read_measured_run(folder, option_table(parts)));
    if (!runs.empty())
        for (std::string& note : fill_from_runs(report.cluster, runs))
            report.taken.push_back(std::move(note));
    fill_from_layers(report.cluster);
    require_complete(report.cluster);
    if (!report.cluster.rows.empty()) {
        report.fit = fit_cluster(report.cluster);
        report.cluster = report.fit->cluster;
    }
    report.plan = plan_cluster(report.cluster);
    report.layouts = plan_layouts(report.cluster);
    return report;
}

}  // namespace

int plan_command(const CommandContext& context) {
    const PlanReport report =
        agree_on(context.world, [&] { return make_report(context.words, context.parts); });
    const bool json = context.words.read(plan_options()).json;
    if (context.world.rank() == 0)
        std::fputs((json ? plan_json(report) : plan_text(report)).c_str(), stdout);
    return 0;
}

}  // namespace hetseq
