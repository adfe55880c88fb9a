#pragma once

#include <filesystem>
#include <vector>

#include "hetseq/state/training_state.hpp"
#include "hetseq/train/checkpoint/checkpoint_files.hpp"

namespace hetseq {

class Communicator;
class HostComm;

/// Whether a checkpoint's files of the optimizer will be read; what is left out may be damaged.
enum class OptimizerFiles { read, left_out };

/// Collective. The state of the checkpoint `folder`, after its files were compared with its
/// manifest; each rank reads some of them. Throws on all ranks MissingInput, BadData or IoError
/// that names the file.
TrainingState verified_state(const HostComm& world,
                             const std::filesystem::path& folder,
                             OptimizerFiles optimizer = OptimizerFiles::read);

/// Collective. Fills the tensors of `files` from `folder`: what every rank holds is read by one
/// rank and handed out, a part that one rank holds is read by it. Throws on all ranks, before any
/// tensor is touched, when one does not fit; IoError when reading fails.
void load_checkpoint(const HostComm& world,
                     Communicator& communicator,
                     const std::filesystem::path& folder,
                     const std::vector<CheckpointFile>& files);

}  // namespace hetseq
