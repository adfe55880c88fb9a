#pragma once

#include <filesystem>
#include <string>

namespace hetseq {

class HostComm;

enum class ExistingRun { refuse, overwrite };

/// The folder a run leaves behind (docs/outputs.md). Only rank 0 writes into it.
class RunFolder {
public:
    /// Collective. Throws on all ranks: BadConfig when `path` holds a run already and may not be
    /// overwritten, IoError when it could not be written. Makes nothing.
    RunFolder(const HostComm& world, const std::filesystem::path& path, ExistingRun existing);

    /// Collective. Makes the folder, removes the files of an earlier run and writes config.cfg and,
    /// unless its text is empty, the model's config.json. Throws IoError on all ranks.
    void begin(const HostComm& world,
               const std::string& config_text,
               const std::string& model_config_text) const;

    std::filesystem::path config() const { return path_ / "config.cfg"; }
    std::filesystem::path metrics() const { return path_ / "metrics.jsonl"; }
    std::filesystem::path summary() const { return path_ / "summary.json"; }
    std::filesystem::path allocations() const { return path_ / "allocations.json"; }
    std::filesystem::path model() const { return path_ / "model.safetensors"; }
    std::filesystem::path best_model() const { return path_ / "best.safetensors"; }
    std::filesystem::path model_config() const { return path_ / "config.json"; }

private:
    std::filesystem::path path_;
};

}  // namespace hetseq
