#include "hetseq/model/tensor_registry.hpp"

#include <algorithm>
#include <map>
#include <string_view>

#include "hetseq/util/error.hpp"

namespace hetseq {

namespace {

/// Numbers of `names` in the order of the tree: those of one node, whose names begin with the same
/// `prefix` characters.
void append_node(const std::vector<std::string_view>& names,
                 const std::vector<std::size_t>& node,
                 std::size_t prefix,
                 std::vector<std::size_t>& order) {
    std::vector<std::vector<std::size_t>> children;
    std::map<std::string_view, std::size_t> numbers;
    for (const std::size_t i : node) {
        const std::size_t dot = names[i].find('.', prefix);
        if (dot == std::string_view::npos) {
            order.push_back(i);
            continue;
        }
        const auto [child, is_new] =
            numbers.try_emplace(names[i].substr(0, dot + 1), children.size());
        if (is_new)
            children.emplace_back();
        children[child->second].push_back(i);
    }
    for (const std::vector<std::size_t>& child : children)
        append_node(names, child, names[child.front()].find('.', prefix) + 1, order);
}

std::vector<at::Tensor> tensors_of(const NamedTensors& named) {
    std::vector<at::Tensor> tensors;
    for (const NamedTensor& one : named)
        tensors.push_back(one.tensor);
    return tensors;
}

}  // namespace

const at::Tensor* NamedTensors::find(const std::string& name) const noexcept {
    const auto found =
        std::ranges::find(tensors_, name, [](const NamedTensor& one) { return one.name; });
    return found == tensors_.end() ? nullptr : &found->tensor;
}

const at::Tensor& NamedTensors::operator[](const std::string& name) const {
    const at::Tensor* const found = find(name);
    HETSEQ_ASSERT(found != nullptr);
    return *found;
}

const at::Tensor* TensorRegistry::find_parameter(const std::string& name) const noexcept {
    const auto found = std::ranges::find_if(entries_, [&](const Entry& entry) {
        return entry.is_parameter && entry.named.name == name;
    });
    return found == entries_.end() ? nullptr : &found->named.tensor;
}

std::vector<at::Tensor> TensorRegistry::parameters() const {
    return tensors_of(named_parameters());
}

std::vector<at::Tensor> TensorRegistry::buffers() const {
    return tensors_of(named_buffers());
}

at::Tensor TensorRegistry::register_parameter(const std::string& name,
                                              at::Tensor tensor,
                                              bool requires_grad) {
    tensor.set_requires_grad(requires_grad);
    add({{name, tensor}, true});
    return tensor;
}

at::Tensor TensorRegistry::register_buffer(const std::string& name, at::Tensor tensor) {
    add({{name, tensor}, false});
    return tensor;
}

void TensorRegistry::add(Entry entry) {
    HETSEQ_ASSERT(std::ranges::none_of(
        entries_, [&](const Entry& other) { return other.named.name == entry.named.name; }));
    entries_.push_back(std::move(entry));
}

NamedTensors TensorRegistry::in_order(bool are_parameters) const {
    std::vector<std::string_view> names;
    std::vector<std::size_t> all, order;
    for (const Entry& entry : entries_) {
        all.push_back(names.size());
        names.push_back(entry.named.name);
    }
    append_node(names, all, 0, order);
    std::vector<NamedTensor> result;
    for (const std::size_t i : order)
        if (entries_[i].is_parameter == are_parameters)
            result.push_back(entries_[i].named);
    return NamedTensors{std::move(result)};
}

void TensorRegistry::refuse_batch_statistics(const std::string& name,
                                             const std::string& type,
                                             bool keeps_means) {
    if (keeps_means || type.find("BatchNorm") != std::string::npos)
        throw BadConfig("the model's module '" + name + "' keeps batch statistics",
                        "its output for one sample depends on the others of its micro-batch, so no "
                        "weighting makes unlike shares equal to one device",
                        "use a normalisation within the sample: LayerNorm or GroupNorm");
}

}  // namespace hetseq
