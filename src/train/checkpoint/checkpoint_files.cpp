#include "hetseq/train/checkpoint/checkpoint_files.hpp"

#include <algorithm>
#include <utility>

#include <ATen/ATen.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/files/safetensors.hpp"
#include "hetseq/model/tensor_types.hpp"
#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/optim/optimizer.hpp"

namespace hetseq {

namespace {

constexpr const char* optimizer_prefix = "optimizer-";

// Elements of a tensor of the state that this rank holds, or undefined; they lie in one range.
at::Tensor held_values(const FlatParameters& parameters,
                       const at::Tensor& state,
                       std::int64_t begin,
                       std::int64_t numel) {
    for (const FlatParameters::Held& held : parameters.held())
        if (held.offset <= begin && begin < held.offset + held.numel)
            return state.narrow(0, held.state_offset + begin - held.offset, numel);
    return {};
}

// Of a parameter, in a tensor of the state that is cut over ranks.
std::vector<CheckpointPart> parts_of(const FlatParameters& parameters,
                                     const FlatParameters::Parameter& parameter,
                                     const at::Tensor& state) {
    std::vector<CheckpointPart> parts;
    for (const OwnedRange& range : parameters.state_ranges()) {
        const std::int64_t begin = std::max(range.begin, parameter.offset);
        const std::int64_t end =
            std::min(range.begin + range.length, parameter.offset + parameter.numel);
        if (begin < end)
            parts.push_back(
                {range.owner, end - begin, held_values(parameters, state, begin, end - begin)});
    }
    return parts;
}

CheckpointTensor state_tensor(const FlatParameters& parameters,
                              const FlatParameters::Parameter& parameter,
                              const std::string& state_name,
                              const at::Tensor& state) {
    const std::string name = state_name + "/" + parameter.name;
    const at::IntArrayRef shape = parameter.tensor.sizes();
    if (parameters.state_ranges().empty())
        return whole_tensor({name, state.narrow(0, parameter.offset, parameter.numel).view(shape)});
    return {name, state.scalar_type(), shape.vec(), parts_of(parameters, parameter, state)};
}

// The optimizer's flat tensors cut by parameter, and its other ones as they are.
std::vector<CheckpointTensor> optimizer_tensors(const FlatParameters& parameters,
                                                const Optimizer& optimizer) {
    std::vector<CheckpointTensor> tensors;
    for (const auto& [name, tensor] : optimizer.state()) {
        if (tensor.dim() == 0 || name.find('/') != std::string::npos) {
            tensors.push_back(whole_tensor({name, tensor}));
            continue;
        }
        HETSEQ_ASSERT(tensor.numel() == parameters.held_numel());
        for (const FlatParameters::Parameter& parameter : parameters.parameters())
            tensors.push_back(state_tensor(parameters, parameter, name, tensor));
    }
    return tensors;
}

CheckpointFile model_file(const Model& model) {
    CheckpointFile file{"model.safetensors", {}};
    for (const NamedTensor& stored : model.stored_tensors())
        file.tensors.push_back(whole_tensor(stored));
    return file;
}

std::string file_name(std::size_t index, std::size_t count) {
    const auto number = [](std::size_t n) {
        const std::string text = std::to_string(n);
        return std::string(5 - std::min<std::size_t>(5, text.size()), '0') + text;
    };
    return optimizer_prefix + number(index + 1) + "-of-" + number(count) + ".safetensors";
}

[[noreturn]] void fail(const std::string& problem, const std::string& why) {
    throw BadData(problem, why, "check that it is a checkpoint of this model and optimizer");
}

}  // namespace

std::int64_t CheckpointTensor::bytes() const {
    auto bytes = static_cast<std::int64_t>(at::elementSize(type));
    for (const std::int64_t extent : shape)
        bytes *= extent;
    return bytes;
}

CheckpointTensor whole_tensor(const NamedTensor& stored) {
    return {stored.name,
            stored.tensor.scalar_type(),
            stored.tensor.sizes().vec(),
            {{CheckpointPart::every_rank, stored.tensor.numel(), stored.tensor}}};
}

std::int64_t CheckpointFile::bytes() const {
    std::int64_t sum = 0;
    for (const CheckpointTensor& tensor : tensors)
        sum += tensor.bytes();
    return sum;
}

std::vector<CheckpointFile> checkpoint_files(const Model& model,
                                             const FlatParameters& parameters,
                                             const Optimizer& optimizer,
                                             std::int64_t file_bytes) {
    std::vector<CheckpointFile> files{model_file(model)};
    for (CheckpointTensor& tensor : optimizer_tensors(parameters, optimizer)) {
        if (files.size() == 1 ||
            files.back().bytes() + tensor.bytes() > std::max<std::int64_t>(1, file_bytes))
            files.push_back({});
        files.back().tensors.push_back(std::move(tensor));
    }
    for (const CheckpointFile& file : files)
        for (const CheckpointTensor& tensor : file.tensors)
            file_type_of(tensor.type);
    for (std::size_t i = 1; i < files.size(); ++i)
        files[i].name = file_name(i - 1, files.size() - 1);
    return files;
}

bool is_optimizer_file(const std::string& name) {
    return name.starts_with(optimizer_prefix);
}

int checkpoint_owner(std::size_t file, int ranks) noexcept {
    return static_cast<int>(file % static_cast<std::size_t>(ranks));
}

void check_fits(const CheckpointFile& file, const std::filesystem::path& folder) {
    const SafetensorsReader reader(folder / file.name);
    const std::string path = reader.path().string();
    for (const CheckpointTensor& tensor : file.tensors) {
        const SafetensorEntry* entry = reader.find(tensor.name);
        if (entry == nullptr)
            fail(path + " lacks the tensor '" + tensor.name + "'",
                 "its shape would be " + shape_text(tensor.shape));
        if (tensor.shape != entry->shape)
            fail("tensor '" + tensor.name + "' of " + path + " does not fit",
                 "its shape is " + shape_text(entry->shape) + ", this run's is " +
                     shape_text(tensor.shape));
        if (entry->type != file_type_of(tensor.type))
            fail("tensor '" + tensor.name + "' of " + path + " does not fit",
                 std::string("its type is ") + name_of(entry->type) + ", this run's is " +
                     name_of(file_type_of(tensor.type)));
    }
    if (reader.entries().size() != file.tensors.size())
        fail(path + " holds " + std::to_string(reader.entries().size()) + " tensors",
             "this run's has " + std::to_string(file.tensors.size()));
}

}  // namespace hetseq
