#include "hetseq/train/checkpoint/checkpoint_files.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include <ATen/core/Tensor.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/files/safetensors.hpp"
#include "hetseq/model/files/tensor_types.hpp"
#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/optim/optimizer.hpp"

namespace hetseq {

namespace {

constexpr const char* optimizer_prefix = "optimizer-";
constexpr const char* pending_prefix = "pending-";
constexpr const char* ema_file_name = "ema.safetensors";

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

// Of a run of the flat parameters, in a tensor of the state that is cut over ranks.
std::vector<CheckpointPart> parts_of(const FlatParameters& parameters,
                                     std::int64_t offset,
                                     std::int64_t numel,
                                     const at::Tensor& state) {
    std::vector<CheckpointPart> parts;
    for (const OwnedRange& range : parameters.state_ranges()) {
        const std::int64_t begin = std::max(range.begin, offset);
        const std::int64_t end = std::min(range.begin + range.length, offset + numel);
        if (begin < end)
            parts.push_back(
                {range.owner, end - begin, held_values(parameters, state, begin, end - begin)});
    }
    return parts;
}

// A tensor that the first of `holders` gives to files. `values`: where this rank is that one.
template <class Values>
CheckpointTensor tensor_of(const NamedTensor& described,
                           at::ScalarType type,
                           const CheckpointHolders& holders,
                           const std::vector<int>& of_it,
                           const Values& values) {
    CheckpointPart part{.holder = of_it.front(), .numel = described.tensor.numel()};
    if (part.holder == holders.rank)
        part.values = values();
    return {described.name, type, described.tensor.sizes().vec(), {part}};
}

CheckpointTensor state_tensor(const FlatParameters& parameters,
                              const FlatParameters::Parameter& parameter,
                              const std::string& state_name,
                              const at::Tensor& state,
                              const CheckpointHolders& holders) {
    const std::string name = state_name + "/" + parameter.name;
    const at::IntArrayRef shape = parameter.tensor.sizes();
    const auto whole = [&] {
        return state.narrow(0, parameter.offset, parameter.numel).view(shape);
    };
    if (!holders.of_parameters.empty())
        return tensor_of({name, parameter.tensor},
                         state.scalar_type(),
                         holders,
                         holders.of_parameters.at(parameter.name),
                         whole);
    if (parameters.state_ranges().empty())
        return whole_tensor({name, whole()});
    return {name,
            state.scalar_type(),
            shape.vec(),
            parts_of(parameters, parameter.offset, parameter.numel, state)};
}

// The optimizer's flat tensors cut by parameter, and its other ones as they are.
std::vector<CheckpointTensor> optimizer_tensors(const FlatParameters& parameters,
                                                const Optimizer& optimizer,
                                                const CheckpointHolders& holders) {
    std::vector<CheckpointTensor> tensors;
    for (const auto& [name, tensor] : optimizer.state()) {
        if (name == Optimizer::average_name)
            continue;  // in a file of its own
        if (tensor.dim() == 0 || name.find('/') != std::string::npos) {
            tensors.push_back(whole_tensor({name, tensor}));
            continue;
        }
        HETSEQ_ASSERT(tensor.numel() == parameters.held_numel());
        for (const FlatParameters::Parameter& parameter : parameters.all_parameters())
            tensors.push_back(state_tensor(parameters, parameter, name, tensor, holders));
    }
    return tensors;
}

// The parameter that a stored tensor is a view of; empty: it is none's. Those that are held may
// share memory, those that are not have an element each.
std::string parameter_of(const NamedTensors& parameters, const at::Tensor& stored) {
    const auto* const begin = static_cast<const std::byte*>(stored.const_data_ptr());
    for (const auto& [name, parameter] : parameters) {
        const auto* const first = static_cast<const std::byte*>(parameter.const_data_ptr());
        if (parameter.storage().is_alias_of(stored.storage()) && first <= begin &&
            begin < first + parameter.nbytes())
            return name;
    }
    return {};
}

CheckpointFile model_file(const Model& model, const CheckpointHolders& holders) {
    CheckpointFile file{"model.safetensors", {}};
    const NamedTensors parameters = model.named_parameters();
    for (const NamedTensor& stored : model.stored_tensors()) {
        const std::string parameter =
            holders.of_parameters.empty() ? "" : parameter_of(parameters, stored.tensor);
        file.tensors.push_back(parameter.empty() ? whole_tensor(stored)
                                                 : tensor_of(stored,
                                                             stored.tensor.scalar_type(),
                                                             holders,
                                                             holders.of_parameters.at(parameter),
                                                             [&] { return stored.tensor; }));
    }
    return file;
}

// Where a stored tensor that is a view of the flat parameters begins in them.
std::int64_t offset_in(const FlatParameters& parameters, const at::Tensor& stored) {
    const at::Tensor values = parameters.values();
    return (static_cast<const std::byte*>(stored.const_data_ptr()) -
            static_cast<const std::byte*>(values.const_data_ptr())) /
           static_cast<std::int64_t>(values.element_size());
}

// The average of what a stored tensor holds, which is a view of the flat parameters.
CheckpointTensor average_of(const FlatParameters& parameters,
                            const NamedTensor& stored,
                            const at::Tensor& average) {
    const std::int64_t offset = offset_in(parameters, stored.tensor);
    const at::IntArrayRef shape = stored.tensor.sizes();
    if (parameters.state_ranges().empty())
        return whole_tensor(
            {stored.name, average.as_strided(shape, stored.tensor.strides(), offset)});
    HETSEQ_ASSERT(stored.tensor.is_contiguous());
    return {stored.name,
            average.scalar_type(),
            shape.vec(),
            parts_of(parameters, offset, stored.tensor.numel(), average)};
}

// The same tensors as the model's file has; those that are trained are averages.
CheckpointFile average_file(const Model& model,
                            const FlatParameters& parameters,
                            const at::Tensor& average,
                            const CheckpointHolders& holders) {
    CheckpointFile file = model_file(model, holders);
    file.name = ema_file_name;
    std::size_t i = 0;
    for (const NamedTensor& stored : model.stored_tensors()) {
        CheckpointTensor& tensor = file.tensors[i++];
        if (!stored.tensor.is_alias_of(parameters.values()))
            continue;
        if (holders.of_parameters.empty())
            tensor = average_of(parameters, stored, average);
        else if (at::Tensor& values = tensor.parts.front().values; values.defined())
            values =
                average.as_strided(values.sizes(), values.strides(), offset_in(parameters, values));
    }
    return file;
}

// Sums are never cut over ranks, as the optimizer's state may be.
std::vector<CheckpointTensor> pending_tensors(const FlatParameters& parameters,
                                              const GradientSet& sums,
                                              const std::string& name,
                                              const CheckpointHolders& holders) {
    std::vector<CheckpointTensor> tensors;
    for (const FlatParameters::Parameter& parameter : parameters.all_parameters())
        tensors.push_back(holders.of_parameters.empty()
                              ? whole_tensor({name + "/" + parameter.name,
                                              sums.flat.narrow(0, parameter.offset, parameter.numel)
                                                  .view(parameter.tensor.sizes())})
                              : state_tensor(parameters, parameter, name, sums.flat, holders));
    if (sums.update_sums.defined())
        tensors.push_back(whole_tensor({name + "/update-sums", sums.update_sums}));
    return tensors;
}

// "optimizer-00001-of-00003.safetensors"
std::string file_name(const std::string& prefix, std::size_t index, std::size_t count) {
    const auto number = [](std::size_t n) {
        const std::string text = std::to_string(n);
        return std::string(5 - std::min<std::size_t>(5, text.size()), '0') + text;
    };
    return prefix + number(index + 1) + "-of-" + number(count) + ".safetensors";
}

// Adds files of about `file_bytes` whose names begin with `prefix`.
void add_files(std::vector<CheckpointFile>& files,
               std::vector<CheckpointTensor> tensors,
               const std::string& prefix,
               std::int64_t file_bytes) {
    const std::size_t before = files.size();
    for (CheckpointTensor& tensor : tensors) {
        if (files.size() == before ||
            files.back().bytes() + tensor.bytes() > std::max<std::int64_t>(1, file_bytes))
            files.push_back({});
        files.back().tensors.push_back(std::move(tensor));
    }
    for (std::size_t i = before; i < files.size(); ++i)
        files[i].name = file_name(prefix, i - before, files.size() - before);
}

// The flat tensors, whatever their files. A buffer of a module's own may change in any forward.
void mark_trained(std::vector<CheckpointFile>& files,
                  const FlatParameters& parameters,
                  const Optimizer& optimizer,
                  std::span<const GradientSet> pending) {
    std::vector<at::Tensor> flat{parameters.values()};
    for (const auto& [name, tensor] : optimizer.state())
        if (tensor.dim() == 1)
            flat.push_back(tensor);
    for (const GradientSet& sums : pending)
        flat.push_back(sums.flat);
    const auto is_trained = [&](const at::Tensor& values) {
        return values.defined() && std::any_of(flat.begin(), flat.end(), [&](const at::Tensor& of) {
                   return values.is_alias_of(of);
               });
    };
    for (CheckpointFile& file : files)
        for (CheckpointTensor& tensor : file.tensors)
            for (CheckpointPart& part : tensor.parts)
                part.is_trained = is_trained(part.values);
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
                                             std::int64_t file_bytes,
                                             const CheckpointHolders& holders,
                                             std::span<const GradientSet> pending) {
    std::vector<CheckpointFile> files{model_file(model, holders)};
    if (const at::Tensor average = optimizer.average(); average.defined())
        files.push_back(average_file(model, parameters, average, holders));
    add_files(
        files, optimizer_tensors(parameters, optimizer, holders), optimizer_prefix, file_bytes);
    for (std::size_t i = 0; i < pending.size(); ++i) {
        const std::string name = pending_prefix + std::to_string(i + 1);
        add_files(
            files, pending_tensors(parameters, pending[i], name, holders), name + "-", file_bytes);
    }
    for (const CheckpointFile& file : files)
        for (const CheckpointTensor& tensor : file.tensors)
            file_type_of(tensor.type);
    mark_trained(files, parameters, optimizer, pending);
    return files;
}

bool is_optimizer_file(const std::string& name) {
    return name.starts_with(optimizer_prefix) || name.starts_with(pending_prefix) ||
           name == ema_file_name;
}

std::vector<int> checkpoint_owners(std::span<const std::int64_t> bytes, int ranks) {
    std::vector<std::size_t> order(bytes.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return bytes[a] > bytes[b];
    });
    std::vector<std::int64_t> load(static_cast<std::size_t>(ranks), 0);
    std::vector<int> owners(bytes.size());
    for (const std::size_t file : order) {
        const auto least = std::min_element(load.begin(), load.end());
        *least += bytes[file];
        owners[file] = static_cast<int>(least - load.begin());
    }
    return owners;
}

std::vector<int> checkpoint_owners(std::span<const CheckpointFile> files, int ranks) {
    std::vector<std::int64_t> bytes;
    for (const CheckpointFile& file : files)
        bytes.push_back(file.bytes());
    return checkpoint_owners(bytes, ranks);
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
