#include "model_choice.hpp"

#include <cstdint>
#include <limits>
#include <map>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/option_value.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/state/checkpoint_folder.hpp"
#include "hetseq/tools/checkpoint_report.hpp"
#include "hetseq/model/files/model_file.hpp"
#include "hetseq/model/model.hpp"
#include "hetseq/app/commands/checkpoint/checkpoint_average.hpp"

namespace hetseq {

namespace {

namespace fs = std::filesystem;

const std::string of_last = "average:";
const std::string of_update = "update:";
constexpr std::int64_t most_checkpoints = 1'000'000;

bool is_average(const std::string& choice) {
    return choice.rfind(of_last, 0) == 0;
}

std::vector<fs::path> last_checkpoints(const fs::path& run, const std::string& choice) {
    const std::int64_t count =
        option_value::whole_number(choice.substr(of_last.size()), 1, most_checkpoints);
    std::vector<fs::path> checkpoints = regular_checkpoints_of(run);
    if (static_cast<std::int64_t>(checkpoints.size()) < count)
        throw MissingInput(
            run.string() + " holds " + std::to_string(checkpoints.size()) + " checkpoints",
            "--checkpoint " + choice,
            "ask for fewer, or train with a larger --keep-last");
    checkpoints.resize(static_cast<std::size_t>(count));
    return checkpoints;
}

fs::path checkpoint_of_update(const fs::path& run, const std::string& choice) {
    const std::int64_t update = option_value::whole_number(
        choice.substr(of_update.size()), 0, std::numeric_limits<std::int64_t>::max());
    const CheckpointFolder folder{run / "checkpoints"};
    std::vector<std::string> kept;
    for (const CheckpointFolder::Entry& entry : folder.list()) {
        if (entry.update == update)
            return entry.path;
        kept.push_back(std::to_string(entry.update));
    }
    throw MissingInput(run.string() + " holds no checkpoint of update " + std::to_string(update),
                       kept.empty() ? "it holds none" : "it holds those of " + join(kept, ", "),
                       "ask for another, or train with a larger --keep-last");
}

fs::path best_of(const fs::path& run) {
    return run / "best.safetensors";
}

fs::path best_or_final(const fs::path& run) {
    if (fs::exists(best_of(run)))
        return best_of(run);
    const fs::path file = model_file(run.string());
    if (!fs::exists(file))
        throw MissingInput(run.string() + " holds no " + file.filename().string(),
                           "its training has not ended",
                           "--checkpoint last takes the newest checkpoint");
    return file;
}

// The first checkpoint tells whether they fit the model.
void load_mean(const std::vector<fs::path>& checkpoints, Model& model) {
    load_model(model_file(checkpoints.front().string()), model);
    std::map<std::string, at::Tensor> means;
    for (const NamedTensor& mean : mean_parameters(checkpoints))
        means.emplace(mean.name, mean.tensor);
    const at::NoGradGuard no_grad;
    for (const NamedTensor& stored : model.stored_tensors())
        stored.tensor.copy_(means.at(stored.name));
}

}  // namespace

std::vector<fs::path> chosen_model_files(const fs::path& run, const std::string& choice) {
    if (choice.empty())
        return {best_or_final(run)};
    if (choice == "best")
        return {best_of(run)};
    if (choice == "last")
        return {model_file(checkpoints_of(run).front().string())};
    if (choice.rfind(of_update, 0) == 0)
        return {model_file(checkpoint_of_update(run, choice).string())};
    if (!is_average(choice))
        return {model_file(choice)};
    std::vector<fs::path> files;
    for (const fs::path& checkpoint : last_checkpoints(run, choice))
        files.push_back(model_file(checkpoint.string()));
    return files;
}

std::string chosen_model_name(const fs::path& run, const std::string& choice) {
    std::vector<std::string> files;
    for (const fs::path& file : chosen_model_files(run, choice))
        files.push_back(file.string());
    return (is_average(choice) ? "the mean of " : "") + join(files, ", ");
}

void load_chosen_model(const fs::path& run, const std::string& choice, Model& model) {
    if (is_average(choice))
        load_mean(last_checkpoints(run, choice), model);
    else
        load_model(checked_model_file(chosen_model_files(run, choice).front().string()), model);
}

}  // namespace hetseq
