#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "hetseq/model/model.hpp"

namespace hetseq {

class FlatParameters;
class Optimizer;

/// One safetensors file of a checkpoint: views of live tensors.
struct CheckpointFile {
    std::string name;
    std::vector<NamedTensor> tensors;

    std::int64_t bytes() const;
};

/// model.safetensors, with the model's stored tensors, and the optimizer's state cut by parameter
/// ("exp_avg/encoder.weight") into files of about `file_bytes`,
/// optimizer-00001-of-00003.safetensors and so on. The files do not depend on the ranks. Throws
/// BadConfig for a tensor of a type that files do not have.
std::vector<CheckpointFile> checkpoint_files(const Model& model,
                                             const FlatParameters& parameters,
                                             const Optimizer& optimizer,
                                             std::int64_t file_bytes = 256 << 20);

/// The rank that writes and reads the file of this index.
int checkpoint_owner(std::size_t file, int ranks) noexcept;

/// Throws BadData, MissingInput or IoError, naming the tensor and both shapes or types, unless
/// `folder` holds `file` with just these tensors. Reads headers alone.
void check_fits(const CheckpointFile& file, const std::filesystem::path& folder);

}  // namespace hetseq
