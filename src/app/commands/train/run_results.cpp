#include "run_results.hpp"

#include <filesystem>
#include <string>
#include <system_error>

#include "hetseq/util/files/atomic_file.hpp"
#include "hetseq/util/files/file_text.hpp"
#include "hetseq/util/json.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/model/files/model_file.hpp"
#include "hetseq/train/checkpoint/whole_model.hpp"
#include "hetseq/train/record/run_folder.hpp"
#include "hetseq/train/record/summary.hpp"
#include "hetseq/train/trainer.hpp"
#include "hetseq/session/options/config_file_values.hpp"
#include "hetseq/session/replica.hpp"
#include "hetseq/session/run_settings.hpp"

#include <nlohmann/json.hpp>

namespace hetseq {

namespace {

// Whether `file` is there, and was written after what it is to be `of`.
bool is_younger(const std::filesystem::path& file, const std::filesystem::path& of) {
    std::error_code failure;
    const auto written = std::filesystem::last_write_time(file, failure);
    return !failure && written >= std::filesystem::last_write_time(of, failure) && !failure;
}

// A run that stopped is finished where its length was lowered to the update of its last checkpoint.
void note_finished(const RunFolder& folder) {
    using Json = nlohmann::ordered_json;
    const auto text = read_file_text(folder.summary());
    Json summary = text ? parse_json_or_discard<Json>(*text) : Json();
    if (!summary.is_object() || !summary.contains("status") || summary["status"] == "finished")
        return;
    summary["status"] = "finished";
    summary["stopped_by"] = nullptr;
    folder.require_lease();
    write_atomically(folder.summary(), json_text(summary, 2) + "\n");
}

}  // namespace

void open_folder(const HostComm& world,
                 RunFolder& folder,
                 std::optional<std::int64_t> continued,
                 const RunSettings& settings,
                 const Model& model) {
    const std::string text =
        config_text(config_file_values(settings.values(), settings.table()), settings.table());
    if (continued)
        folder.resume(world, *continued, text, model.companion_files());
    else
        folder.begin(world, text, model.companion_files());
}

void keep_best_model(const HostComm& world,
                     const RunFolder& folder,
                     const TrainingProgress& progress) {
    agree_on(world, [&] {
        if (world.rank() != 0 || !progress.best_valid ||
            std::filesystem::exists(folder.best_model()))
            return;
        const auto held = model_file(folder.checkpoints().of_update(progress.best_update).string());
        folder.require_lease();
        if (const auto bytes = std::filesystem::exists(held) ? read_file_text(held) : std::nullopt)
            write_atomically(folder.best_model(), *bytes);
        else
            log::warn(folder.best_model().string() +
                      " is not there, and no checkpoint holds the best model, of update " +
                      std::to_string(progress.best_update) + ": the next better one is kept again");
    });
}

void save_final_model(const HostComm& world, const RunFolder& folder, const Replica& replica) {
    const auto require_lease = [&] { folder.require_lease(); };
    if (replica.stage() != nullptr)
        return save_whole_model(
            world, replica.checkpoint_files().front(), folder.model(), require_lease);
    agree_on(world, [&] {
        if (world.rank() == 0)
            save_model(folder.model(), replica.model(), require_lease);
    });
}

void write_results(const RunFolder& folder, const Summary& summary, const TrainerReport& report) {
    folder.require_lease();
    write_atomically(folder.summary(), summary.json(report));
    folder.look_after_parts();
    folder.report_removed_parts();
}

void keep_final_model(const HostComm& world,
                      const RunFolder& folder,
                      const std::filesystem::path& checkpoint,
                      Replica& replica) {
    const bool is_there = world.broadcast(
        std::int64_t{world.rank() == 0 && is_younger(folder.model(), checkpoint)}, 0);
    replica.use_average();
    if (!is_there)
        save_final_model(world, folder, replica);
    agree_on(world, [&] {
        if (world.rank() == 0)
            note_finished(folder);
    });
}

void say_where_the_model_is(const RunFolder* folder, const TrainerReport& report, bool stopped) {
    if (folder == nullptr)
        log::info("the model was not kept: there is no --save-dir");
    else if (stopped)
        log::info("checkpoint: " + folder->checkpoints().of_update(report.updates).string() +
                  "; the same command continues the run");
    else
        log::info("model: " + folder->model().string() +
                  (report.best_valid && std::filesystem::exists(folder->best_model())
                       ? "; best by validation (update " + std::to_string(report.best_update) +
                             "): " + folder->best_model().string()
                       : ""));
}

}  // namespace hetseq
