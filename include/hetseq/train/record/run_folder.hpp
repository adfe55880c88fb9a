#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "hetseq/model/companion_file.hpp"
#include "hetseq/train/checkpoint/checkpoint_folder.hpp"

namespace hetseq {

class HostComm;

enum class ExistingRun { refuse, overwrite, resume };

/// The folder of a run's results (docs/outputs.md). Only rank 0 writes into it.
class RunFolder {
public:
    /// Collective. Throws on all ranks: BadConfig if `path` already holds a run and may not be
    /// overwritten, IoError if it cannot be written. Creates nothing.
    RunFolder(const HostComm& world, const std::filesystem::path& path, ExistingRun existing);

    /// Collective. Makes the folder, removes the files of an earlier run and writes config.cfg and
    /// the files that belong to the model. Throws IoError on all ranks.
    void begin(const HostComm& world,
               const std::string& config_text,
               const std::vector<CompanionFile>& model_files) const;
    /// Collective. Cuts what the run wrote back to `update` and writes config.cfg anew. Throws
    /// IoError on all ranks.
    void resume(const HostComm& world, std::int64_t update, const std::string& config_text) const;

    /// True if it held a run when this object was made; the same on all ranks.
    bool holds_run() const noexcept { return holds_run_; }

    std::filesystem::path config() const { return path_ / "config.cfg"; }
    std::filesystem::path metrics() const { return path_ / "metrics.jsonl"; }
    std::filesystem::path tensorboard() const { return path_ / "tensorboard"; }
    std::filesystem::path summary() const { return path_ / "summary.json"; }
    std::filesystem::path allocations() const { return path_ / "allocations.json"; }
    std::filesystem::path model() const { return path_ / "model.safetensors"; }
    std::filesystem::path best_model() const { return path_ / "best.safetensors"; }
    std::filesystem::path model_config() const { return path_ / "config.json"; }
    std::filesystem::path stop_file() const { return stop_file_of(path_); }
    /// For a rank that has the folder's name alone.
    static std::filesystem::path stop_file_of(const std::filesystem::path& run) {
        return run / "STOP";
    }
    CheckpointFolder checkpoints() const { return CheckpointFolder(path_ / "checkpoints"); }
    const std::filesystem::path& path() const noexcept { return path_; }

private:
    std::filesystem::path path_;
    bool holds_run_ = false;
};

}  // namespace hetseq
