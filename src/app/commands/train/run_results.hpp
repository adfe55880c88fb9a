#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace hetseq {

class HostComm;
class Model;
class Replica;
class RunFolder;
struct RunSettings;
struct Summary;
struct TrainerReport;
struct TrainingProgress;

/// What a run's folder holds before the first update. `continued`: the update of the folder's own
/// checkpoint from which the run goes on. Collective.
void open_folder(const HostComm& world,
                 RunFolder& folder,
                 std::optional<std::int64_t> continued,
                 const RunSettings& settings,
                 const Model& model);

/// A folder of checkpoints alone lacks the best model; the checkpoint of its update holds it.
/// Collective.
void keep_best_model(const HostComm& world,
                     const RunFolder& folder,
                     const TrainingProgress& progress);

/// The model that a finished run has trained. Collective; rank 0 writes.
void save_final_model(const HostComm& world, const RunFolder& folder, const Replica& replica);

/// Writes it if it is not there, or is older than the run's last `checkpoint`: a run that was
/// killed behind that, or whose length was lowered to it, lacks the model that it had come to, or
/// has that of an earlier end. summary.json then calls the run finished. Collective.
void keep_final_model(const HostComm& world,
                      const RunFolder& folder,
                      const std::filesystem::path& checkpoint,
                      Replica& replica);

/// Writes the summary, and says which files of the run somebody removed meanwhile.
void write_results(const RunFolder& folder, const Summary& summary, const TrainerReport& report);

/// The last line of a run: where what it has trained lies. `folder` may be null.
void say_where_the_model_is(const RunFolder* folder, const TrainerReport& report, bool stopped);

}  // namespace hetseq
