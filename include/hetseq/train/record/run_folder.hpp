#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "hetseq/state/checkpoint_folder.hpp"
#include "hetseq/model/files/companion_file.hpp"

namespace hetseq {

class FolderLease;
class FolderParts;
class HostComm;

enum class ExistingRun { refuse, overwrite, resume };
enum class FolderUse { write, look };

/// The folder of a run's results (docs/outputs.md). Only rank 0 writes into it, and while it does
/// so, it has the folder's lease.
class RunFolder {
public:
    /// Collective. Throws on all ranks: BadConfig if `path` holds a run and may not be overwritten,
    /// or results and no checkpoint to continue from, or if another job trains into it; IoError if
    /// it cannot be written. Makes nothing but the lease, and that only in a folder that exists.
    RunFolder(const HostComm& world,
              const std::filesystem::path& path,
              ExistingRun existing,
              FolderUse use = FolderUse::write);
    ~RunFolder();
    RunFolder(RunFolder&&) noexcept;
    RunFolder& operator=(RunFolder&&) noexcept;

    /// Collective. Makes the folder and writes config.cfg and the files that belong to the model.
    /// With ExistingRun::overwrite it removes an earlier run's files first; otherwise the folder
    /// holds no checkpoint. Throws on all ranks: IoError, and BadConfig if another job began a run
    /// in the meantime.
    void begin(const HostComm& world,
               const std::string& config_text,
               const std::vector<CompanionFile>& model_files);
    /// Collective. Cuts what the run wrote back to `update`, writes config.cfg anew, and files of
    /// the model that are missing. Throws as `begin` does.
    void resume(const HostComm& world,
                std::int64_t update,
                const std::string& config_text,
                const std::vector<CompanionFile>& model_files);

    /// True if it held a run when this object was made; the same on all ranks.
    bool holds_run() const noexcept { return holds_run_; }
    /// To be called on rank 0 before a file is renamed or removed; does nothing on other ranks.
    /// Throws BadConfig if another job took the lease.
    void require_lease() const;
    /// The same by what was seen last, which costs nothing.
    void require_known_lease() const;
    bool has_lost_lease() const;
    /// As `require_lease`, for a place where one rank cannot throw alone: what it leaves out, no
    /// longer matters to anybody, and all ranks hear of it soon.
    bool may_write() const;
    /// On rank 0: warns of parts that somebody removed since the last call, and writes those anew
    /// whose content is known.
    void look_after_parts() const;
    /// The last word about such parts.
    void report_removed_parts() const;

    std::filesystem::path config() const { return path_ / "config.cfg"; }
    std::filesystem::path metrics() const { return path_ / "metrics.jsonl"; }
    std::filesystem::path tensorboard() const { return path_ / "tensorboard"; }
    std::filesystem::path history() const { return path_ / "starts.json"; }
    std::filesystem::path summary() const { return path_ / "summary.json"; }
    std::filesystem::path allocations() const { return path_ / "allocations.json"; }
    std::filesystem::path model() const { return path_ / "model.safetensors"; }
    std::filesystem::path best_model() const { return path_ / "best.safetensors"; }
    std::filesystem::path model_config() const { return path_ / "config.json"; }
    std::filesystem::path stop_file() const { return stop_file_of(path_); }
    /// What the stop file says where a rank that was left out wrote it, to pass a signal on.
    static constexpr const char* passed_on = "a signal came to a rank that was left out\n";
    /// For a rank that has the folder's name alone.
    static std::filesystem::path stop_file_of(const std::filesystem::path& run) {
        return run / "STOP";
    }
    CheckpointFolder checkpoints() const;
    const std::filesystem::path& path() const noexcept { return path_; }

private:
    void require_first_start() const;
    void require_usable() const;
    void remove_temporary_files() const;
    void remove_earlier_run() const;
    void keep(const std::string& config_text, const std::vector<CompanionFile>& model_files);
    void remove_old_stop_file() const;
    std::vector<std::filesystem::path> results() const;

    std::filesystem::path path_;
    ExistingRun existing_;
    bool holds_run_ = false;
    std::string start_;                   // the token of this start, on all ranks
    std::shared_ptr<FolderLease> lease_;  // on rank 0 of a run that writes
    std::unique_ptr<FolderParts> parts_;  // on rank 0, once the run has begun
};

}  // namespace hetseq
