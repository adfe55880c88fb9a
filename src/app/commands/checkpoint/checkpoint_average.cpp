#include "hetseq/app/commands/checkpoint/checkpoint_average.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/files/safetensors.hpp"
#include "hetseq/model/files/model_file.hpp"
#include "hetseq/model/files/tensor_types.hpp"

namespace hetseq {

namespace fs = std::filesystem;

namespace {

at::Tensor read_tensor(SafetensorsReader& file, const SafetensorEntry& entry) {
    const at::Tensor values = at::empty(entry.shape, scalar_type_of(entry.type));
    file.read(entry, values.mutable_data_ptr());
    return values;
}

// The entry of `file` that is to be averaged with `first`.
const SafetensorEntry& same_tensor(const SafetensorsReader& file, const SafetensorEntry& first) {
    const SafetensorEntry* const entry = file.find(first.name);
    if (entry == nullptr || entry->shape != first.shape || entry->type != first.type)
        throw BadData(file.path().string() + " belongs to another model",
                      "tensor '" + first.name + "' is missing or of another shape or type",
                      "average checkpoints of one run");
    return *entry;
}

}  // namespace

std::vector<NamedTensor> mean_parameters(const std::vector<fs::path>& checkpoints) {
    std::vector<SafetensorsReader> files;
    for (const fs::path& checkpoint : checkpoints)
        files.emplace_back(checked_model_file(checkpoint.string()));
    for (const SafetensorsReader& file : files)
        if (file.entries().size() != files.front().entries().size())
            throw BadData(file.path().string() + " belongs to another model",
                          "it has another number of tensors",
                          "average checkpoints of one run");
    std::vector<NamedTensor> means;
    for (const SafetensorEntry& first : files.front().entries()) {
        at::Tensor sum = at::zeros(first.shape, at::kDouble);
        for (SafetensorsReader& file : files)
            sum += read_tensor(file, same_tensor(file, first)).to(at::kDouble);
        means.push_back(
            {first.name, (sum / static_cast<double>(files.size())).to(scalar_type_of(first.type))});
    }
    return means;
}

void average_checkpoints(const std::vector<fs::path>& checkpoints, const fs::path& output) {
    const std::vector<NamedTensor> means = mean_parameters(checkpoints);
    std::vector<SafetensorData> tensors;
    for (const NamedTensor& mean : means)
        tensors.push_back({mean.name,
                           file_type_of(mean.tensor.scalar_type()),
                           mean.tensor.sizes().vec(),
                           mean.tensor.const_data_ptr()});
    write_safetensors(output, tensors, {{"format", "pt"}});
}

}  // namespace hetseq
