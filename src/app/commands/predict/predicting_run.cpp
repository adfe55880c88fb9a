#include "predicting_run.hpp"

#include "hetseq/util/error.hpp"
#include "hetseq/util/log.hpp"

#include "app/commands/command_options.hpp"
#include "app/commands/model_choice.hpp"
#include "app/commands/recorded_options.hpp"

namespace hetseq {

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
    if (typed_options(result.file).model == "transformer")
        throw BadConfig(run.folder.string() + " is the run of a translation model",
                        "its predictions are text",
                        "hetseq translate " + run.folder.string() + " < lines");
    return result;
}

std::shared_ptr<Model> load_predicting_model(const PredictingRun& run,
                                             const RunSettings& settings,
                                             const Parts& parts) {
    const std::string& name = settings.options().model;
    std::shared_ptr<Model> model = parts.models.get(name)(settings.options().parts);
    if (!model->predicts())
        throw BadConfig("the model '" + name + "' makes no predictions",
                        "its Model::predicts says so",
                        "docs/predictions.md tells how a model of your own gets some");
    load_chosen_model(run.folder, run.checkpoint, *model);
    log::info("predicts with " + chosen_model_name(run.folder, run.checkpoint));
    model->to(settings.device, settings.dtype);
    return model;
}

}  // namespace hetseq
