#include "hetseq/train/checkpoint/checkpoint_files.hpp"

#include <ATen/ATen.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/files/safetensors.hpp"
#include "hetseq/model/tensor_types.hpp"
#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/optim/optimizer.hpp"

namespace hetseq {

namespace {

std::int64_t bytes_of(const at::Tensor& tensor) {
    return static_cast<std::int64_t>(tensor.nbytes());
}

// The optimizer's flat tensors cut by parameter, and its other ones as they are.
std::vector<NamedTensor> optimizer_tensors(const FlatParameters& parameters,
                                           const Optimizer& optimizer) {
    std::vector<NamedTensor> tensors;
    for (const auto& [name, tensor] : optimizer.state()) {
        if (tensor.dim() == 0 || name.find('/') != std::string::npos) {
            tensors.push_back({name, tensor});
            continue;
        }
        HETSEQ_ASSERT(tensor.numel() == parameters.values().numel());
        for (const FlatParameters::Parameter& parameter : parameters.parameters())
            tensors.push_back({name + "/" + parameter.name,
                               tensor.narrow(0, parameter.offset, parameter.numel)
                                   .view(parameter.tensor.sizes())});
    }
    return tensors;
}

std::string file_name(std::size_t index, std::size_t count) {
    const auto number = [](std::size_t n) {
        const std::string text = std::to_string(n);
        return std::string(5 - std::min<std::size_t>(5, text.size()), '0') + text;
    };
    return "optimizer-" + number(index + 1) + "-of-" + number(count) + ".safetensors";
}

[[noreturn]] void fail(const std::string& problem, const std::string& why) {
    throw BadData(problem, why, "check that it is a checkpoint of this model and optimizer");
}

}  // namespace

std::int64_t CheckpointFile::bytes() const {
    std::int64_t sum = 0;
    for (const NamedTensor& stored : tensors)
        sum += bytes_of(stored.tensor);
    return sum;
}

std::vector<CheckpointFile> checkpoint_files(const Model& model,
                                             const FlatParameters& parameters,
                                             const Optimizer& optimizer,
                                             std::int64_t file_bytes) {
    std::vector<CheckpointFile> files{{"model.safetensors", model.stored_tensors()}};
    for (NamedTensor& stored : optimizer_tensors(parameters, optimizer)) {
        if (files.size() == 1 ||
            files.back().bytes() + bytes_of(stored.tensor) > std::max<std::int64_t>(1, file_bytes))
            files.push_back({});
        files.back().tensors.push_back(std::move(stored));
    }
    for (const CheckpointFile& file : files)
        for (const NamedTensor& stored : file.tensors)
            file_type_of(stored.tensor.scalar_type());
    for (std::size_t i = 1; i < files.size(); ++i)
        files[i].name = file_name(i - 1, files.size() - 1);
    return files;
}

int checkpoint_owner(std::size_t file, int ranks) noexcept {
    return static_cast<int>(file % static_cast<std::size_t>(ranks));
}

void check_fits(const CheckpointFile& file, const std::filesystem::path& folder) {
    const SafetensorsReader reader(folder / file.name);
    const std::string path = reader.path().string();
    for (const auto& [name, tensor] : file.tensors) {
        const SafetensorEntry* entry = reader.find(name);
        if (entry == nullptr)
            fail(path + " lacks the tensor '" + name + "'",
                 "its shape would be " + shape_text(tensor.sizes()));
        if (tensor.sizes() != at::IntArrayRef(entry->shape))
            fail("tensor '" + name + "' of " + path + " does not fit",
                 "its shape is " + shape_text(entry->shape) + ", this run's is " +
                     shape_text(tensor.sizes()));
        if (entry->type != file_type_of(tensor.scalar_type()))
            fail("tensor '" + name + "' of " + path + " does not fit",
                 std::string("its type is ") + name_of(entry->type) + ", this run's is " +
                     name_of(file_type_of(tensor.scalar_type())));
    }
    if (reader.entries().size() != file.tensors.size())
        fail(path + " holds " + std::to_string(reader.entries().size()) + " tensors",
             "this run's has " + std::to_string(file.tensors.size()));
}

}  // namespace hetseq
