#include <cstdio>

#include "hetseq/util/error.hpp"
#include "hetseq/util/json.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/util/quantity.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/mpi/mpi_environment.hpp"
#include "hetseq/model/files/model_file.hpp"
#include "hetseq/train/pass.hpp"
#include "hetseq/train/shares/share_plan.hpp"
#include "hetseq/train/validation/evaluator.hpp"
#include "hetseq/train/worker_map.hpp"
#include "hetseq/session/options/option_name.hpp"
#include "hetseq/session/replica.hpp"
#include "hetseq/session/run_settings.hpp"
#include "hetseq/session/starting_shares.hpp"
#include "hetseq/session/validation_plan.hpp"
#include "hetseq/app/commands.hpp"
#include "hetseq/app/failure.hpp"

#include "command_options.hpp"
#include "model_choice.hpp"
#include "recorded_options.hpp"
#include <nlohmann/json.hpp>

namespace hetseq {

namespace {

std::string checkpoint_of(const CommandWords& words) {
    return words.read(evaluate_options()).checkpoint;
}

// Whether the model is the run's, which --checkpoint chooses.
bool takes_runs_model(const CommandWords& words) {
    return !words.arguments.empty() && typed_options(words.options).parts.init_model.empty();
}

// RUN stands for its configuration and its model.
GivenOptions evaluated_options(const CommandWords& words, const Parts& parts) {
    const std::string checkpoint = checkpoint_of(words);
    if (!checkpoint.empty() && !takes_runs_model(words))
        throw BadConfig("--checkpoint " + checkpoint + " chooses among a run's models",
                        words.arguments.empty() ? "no RUN is given" : "--init-model is given too",
                        "give RUN alone, or leave --checkpoint out");
    if (!words.arguments.empty())
        return options_of_run(
            words.arguments.front(), words.options, parts, RunData::validation_if_any);
    if (typed_options(words.options).parts.init_model.empty())
        throw BadUsage("there is no model to evaluate",
                       "neither a run's folder nor --init-model is given",
                       "give one of them");
    return {words.options, {}};
}

bool takes_training_data(const CommandWords& words, const GivenOptions& given) {
    return !words.arguments.empty() && !given.line.contains(option_name(any_options().data)) &&
           !given.file.contains(option_name(any_options().valid_data));
}

std::string model_name(const CommandWords& words, const Options& options) {
    return takes_runs_model(words)
               ? chosen_model_name(words.arguments.front(), checkpoint_of(words))
               : model_file(options.parts.init_model).string();
}

std::shared_ptr<Model> evaluated_model(const CommandContext& context, const RunSettings& settings) {
    if (!takes_runs_model(context.words))
        return build_model(context.world, settings, context.parts);
    return agree_on(context.world, [&] {
        const Options& options = settings.options();
        std::shared_ptr<Model> model = context.parts.models.get(options.model)(options.parts);
        load_chosen_model(context.words.arguments.front(), checkpoint_of(context.words), *model);
        model->to(settings.device, settings.precision);
        return model;
    });
}

std::string as_json(const Evaluation& evaluation,
                    const std::string& model,
                    const Options& options) {
    nlohmann::ordered_json json{{"model", model},
                                {"data", options.data},
                                {"precision", options.precision.text()},
                                {"loss", evaluation.loss()}};
    for (const auto& loss : evaluation.losses)
        json[loss.name] = loss.value;
    for (const auto& metric : evaluation.metrics)
        json[metric.name] = metric.value;
    json["samples"] = evaluation.samples;
    json["seconds"] = evaluation.seconds;
    return json_text(json, 2) + "\n";
}

std::string as_text(const Evaluation& evaluation,
                    const std::string& model,
                    const Options& options) {
    std::vector<std::vector<std::string>> rows{
        {"model", model}, {"data", options.data}, {"loss", format_number(evaluation.loss(), 6)}};
    for (const auto& loss : evaluation.losses)
        rows.push_back({"  " + loss.name, loss.has_weight ? format_number(loss.value, 6) : "none"});
    for (const auto& metric : evaluation.metrics)
        rows.push_back({metric.name, value_text(metric)});
    rows.push_back({"samples", std::to_string(evaluation.samples)});
    rows.push_back({"seconds", format_number(evaluation.seconds, 3)});
    return format_table(rows);
}

}  // namespace

int evaluate_command(const CommandContext& context) {
    const HostComm& world = context.world;
    const GivenOptions given =
        agree_on(world, [&] { return evaluated_options(context.words, context.parts); });
    const RunSettings settings =
        set_up_ranks(world, settle_options(world, given, context.parts), context.parts);
    if (takes_training_data(context.words, given))
        log::warn(context.words.arguments.front() +
                  " has no validation data, so its training data is evaluated: give --data");
    DataContext data(world, context.environment->thread_support() == ThreadSupport::multiple);
    const std::shared_ptr<Model> model = evaluated_model(context, settings);
    warn_if_inexact(*model);
    const std::string name =
        agree_on(world, [&] { return model_name(context.words, settings.options()); });
    Feed feed(
        data, required_data(settings.options()), settings, context.parts, *model, Shuffle::no);
    SharePlan shares = declared_shares(world, settings, feed.corpus());
    const BatchPlan plan =
        agree_on(world, [&] { return make_validation_plan(feed, *model, settings, shares); });
    const WorkerMap workers{world.size()};
    const std::unique_ptr<Pass> pass = make_whole_pass(*model);
    Evaluator evaluator(world, workers, *pass, feed.loader(), plan, shares);
    return run_or_end(context.meeting, [&] {
        const Evaluation evaluation = evaluator.run();
        const Options& options = settings.options();
        if (world.rank() != 0)
            return;
        std::fputs(
            (options.json ? as_json(evaluation, name, options) : as_text(evaluation, name, options))
                .c_str(),
            stdout);
    });
}

}  // namespace hetseq
