#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "hetseq/model/model.hpp"
#include "hetseq/train/parameter_holders.hpp"

namespace hetseq {

class FlatParameters;
class Optimizer;
struct GradientSet;

/// A run of a tensor's elements in row-major order, and who holds it.
struct CheckpointPart {
    static constexpr int every_rank = -1;

    int holder = every_rank;  // or a rank
    std::int64_t numel = 0;
    at::Tensor values =
        {};  // a view of the live tensor; undefined where this rank does not hold it
    bool is_trained = false;  // values, state or sums that nothing but optimizer steps change
};

/// A tensor of a file: its parts, one after the other. All ranks have the same list but for
/// `values`.
struct CheckpointTensor {
    std::string name;
    at::ScalarType type = at::kFloat;
    std::vector<std::int64_t> shape;
    std::vector<CheckpointPart> parts;

    std::int64_t bytes() const;
};

/// A tensor that every rank holds, whole.
CheckpointTensor whole_tensor(const NamedTensor& stored);

/// One safetensors file of a checkpoint.
struct CheckpointFile {
    std::string name;
    std::vector<CheckpointTensor> tensors;

    std::int64_t bytes() const;
};

/// Who holds the parameters, with their state, where they are cut over ranks; and this rank.
struct CheckpointHolders {
    ParameterHolders of_parameters = {};
    int rank = 0;
};

/// model.safetensors, with the model's stored tensors, and the optimizer's state cut by parameter
/// ("exp_avg/encoder.weight") into files of about `file_bytes`,
/// optimizer-00001-of-00003.safetensors and so on. `pending`: summed gradients that the next
/// updates will apply, in order: "pending-1/encoder.weight" in
/// pending-1-00001-of-00002.safetensors. Where the optimizer keeps an average of the parameters,
/// ema.safetensors, with the names of the model's file, comes behind that. What the files will hold
/// does not depend on the ranks, nor on who holds parameters or state. Throws BadConfig for a
/// tensor of a type that files do not have.
std::vector<CheckpointFile> checkpoint_files(const Model& model,
                                             const FlatParameters& parameters,
                                             const Optimizer& optimizer,
                                             std::int64_t file_bytes = 256 << 20,
                                             const CheckpointHolders& holders = {},
                                             std::span<const GradientSet> pending = {});

/// Whether a checkpoint's file of this name is one of the optimizer's, or of sums that it will
/// apply.
bool is_optimizer_file(const std::string& name);

/// By file, the rank that writes it, and reads from it what every rank holds. `bytes`: of the
/// files. The largest go first, each to the rank that has the least so far.
std::vector<int> checkpoint_owners(std::span<const std::int64_t> bytes, int ranks);
std::vector<int> checkpoint_owners(std::span<const CheckpointFile> files, int ranks);

/// Throws BadData, MissingInput or IoError, naming the tensor and both shapes or types, unless
/// `folder` holds `file` with just these tensors. Reads headers alone.
void check_fits(const CheckpointFile& file, const std::filesystem::path& folder);

}  // namespace hetseq
