#pragma once

#include <filesystem>
#include <functional>

namespace hetseq {

class HostComm;
struct CheckpointFile;

/// Collective. Writes the model's file of a checkpoint, whose tensors may be held by several ranks,
/// as the file `path`, atomically. `before_naming` as in AtomicFile, called on rank 0, which
/// writes. Throws IoError on all ranks.
void save_whole_model(const HostComm& world,
                      const CheckpointFile& model,
                      const std::filesystem::path& path,
                      const std::function<void()>& before_naming = {});

}  // namespace hetseq
