#include "predicting_run.hpp"

#include "hetseq/util/error.hpp"
#include "hetseq/util/log.hpp"

#include "app/commands/command_options.hpp"
#include "app/commands/model_choice.hpp"
#include "app/commands/recorded_options.hpp"

namespace hetseq {

namespace {

std::string with_folder(std::string command, const std::filesystem::path& folder) {
    const std::string placeholder = "RUN";
    const std::size_t at = command.find(placeholder);
    return at == std::string::npos ? command
                                   : command.replace(at, placeholder.size(), folder.string());
}

}  // namespace

PredictingRun predicting_run(const CommandWords& words) {
    const PredictOptions options = words.read(predict_options());
    return {.folder = words.arguments.front(),
            .checkpoint = options.checkpoint,
            .batch_samples = options.batch_samples};
}

GivenOptions options_of_predicting_run(const PredictingRun& run,
                                       const OptionValues& given,
                                       const Parts& parts,
                                       RunData data) {
    GivenOptions result = options_of_run(run.folder, given, parts, data);
    const std::string task = typed_options(result.file).task;
    const std::string other = parts.tasks.has(task) ? parts.tasks.get(task).instead_of_predict : "";
    if (!other.empty())
        throw BadConfig(run.folder.string() + " is the run of a model for another command",
                        "its --task is " + task,
                        with_folder(other, run.folder));
    return result;
}

std::shared_ptr<Model> load_predicting_model(const PredictingRun& run,
                                             const RunSettings& settings,
                                             const Parts& parts) {
    const std::string& name = settings.options().model;
    std::shared_ptr<Model> model = parts.models.get(name)(settings.options().parts);
    if (!model->predicts())
        throw BadConfig(
            "the model '" + name + "' makes no predictions",
            "its Model::predicts says so",
            "docs/predictions.md (C++) and docs/python.md tell how a model of your own gets "
            "some");
    load_chosen_model(run.folder, run.checkpoint, *model);
    log::info("predicts with " + chosen_model_name(run.folder, run.checkpoint));
    model->to(settings.device, settings.precision);
    return model;
}

}  // namespace hetseq
