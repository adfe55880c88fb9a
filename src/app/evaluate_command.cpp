#include <cstdio>
#include <filesystem>

#include "hetseq/util/error.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/mpi_environment.hpp"

#include <nlohmann/json.hpp>

#include "hetseq/train/evaluator.hpp"
#include "hetseq/app/commands.hpp"
#include "hetseq/app/failure.hpp"
#include "hetseq/app/option_parser.hpp"
#include "hetseq/app/rank_setup.hpp"
#include "hetseq/app/training.hpp"

namespace hetseq {

namespace {

// RUN stands for its configuration and its final model.
GivenOptions read_words(const std::vector<std::string>& words) {
    const ParsedOptions parsed = parse_command_line(words);
    GivenOptions result{parsed.values, {}};
    if (parsed.positionals.size() > 1)
        throw BadUsage("more than one run: " + join(parsed.positionals, ", "), "", "give one");
    if (!parsed.positionals.empty()) {
        const std::filesystem::path run = parsed.positionals.front();
        result.file = parse_config_file((run / "config.cfg").string());
        result.file["init-model"] = run.string();
        if (result.file.count("valid-data") != 0)
            result.file["data"] = result.file["valid-data"];
        // Its config.json describes the model, and its ranks need not be this job's.
        if (std::filesystem::exists(run / "config.json"))
            result.file.erase("model-config");
        result.file.erase("cache-mb");
        result.file.erase("threads");
        result.file.erase("batch-size");
        if (!result.line.count("max-sentences"))
            result.file.erase("max-sentences");
    } else if (!parsed.values.count("init-model")) {
        throw BadUsage(
            "no model to evaluate", "neither a run's folder nor --init-model", "give one of them");
    }
    return result;
}

std::string as_json(const Evaluation& evaluation) {
    nlohmann::ordered_json json{{"loss", evaluation.loss()}};
    for (const auto& loss : evaluation.losses)
        json[loss.name] = loss.value;
    for (const auto& metric : evaluation.metrics)
        json[metric.name] = metric.value;
    json["samples"] = evaluation.samples;
    json["seconds"] = evaluation.seconds;
    return json.dump(2) + "\n";
}

std::string as_text(const Evaluation& evaluation) {
    std::vector<std::vector<std::string>> rows{{"loss", format_number(evaluation.loss(), 6)}};
    for (const auto& loss : evaluation.losses)
        rows.push_back({"  " + loss.name, format_number(loss.value, 6)});
    for (const auto& metric : evaluation.metrics)
        rows.push_back({metric.name, format_number(100 * metric.value, 5) + " %"});
    rows.push_back({"samples", std::to_string(evaluation.samples)});
    rows.push_back({"seconds", format_number(evaluation.seconds, 3)});
    return format_table(rows);
}

}  // namespace

int evaluate_command(const CommandContext& context) {
    const HostComm& world = context.world;
    const GivenOptions given = agree_on(world, [&] { return read_words(context.words); });
    const RankSetup setup = set_up_ranks(world, settle_options(world, given, context.parts));
    DataContext data(world, context.environment->thread_support() == ThreadSupport::multiple);
    const std::shared_ptr<Model> model = build_model(world, setup, context.parts);
    SharePlan shares(world, "declared", setup.capacities);
    Feed feed(data,
              required_data(setup.options),
              setup,
              context.parts,
              *model,
              setup.batch_size,
              Shuffle::no);
    Evaluator evaluator(world, *model, feed.loader(), feed.plan(), shares);
    return run_or_end(context.meeting, [&] {
        const Evaluation evaluation = evaluator.run();
        if (world.rank() == 0)
            std::fputs((setup.options.json ? as_json(evaluation) : as_text(evaluation)).c_str(),
                       stdout);
    });
}

}  // namespace hetseq
