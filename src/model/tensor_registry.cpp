#include "hetseq/model/tensor_registry.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

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
    const auto found = std::ranges::find(tensors_, name, &NamedTensor::name);
    return found == tensors_.end() ? nullptr : &found->tensor;
}

const at::Tensor& NamedTensors::operator[](const std::string& name) const {
    const at::Tensor* const found = find(name);
    HETSEQ_ASSERT(found != nullptr);
    return *found;
}

at::Tensor TensorRegistry::find_parameter(const std::string& name) const {
    for (const Entry& entry : contents().entries)
        if (entry.is_parameter && entry.named.name == name)
            return entry.named.tensor;
    return {};
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
    if (tensor.defined())
        tensor.set_requires_grad(requires_grad);
    add({{name, tensor}, true});
    return tensor;
}

at::Tensor TensorRegistry::register_buffer(const std::string& name, at::Tensor tensor) {
    add({{name, tensor}, false});
    return tensor;
}

void TensorRegistry::keep_only(const std::set<std::string>& names) {
    is_part_ = true;
    const NamedTensors all = named_parameters();
    std::set<const at::TensorImpl*> kept;
    for (const NamedTensor& named : all)
        if (names.count(named.name) != 0)
            kept.insert(named.tensor.unsafeGetTensorImpl());
    std::set<const at::TensorImpl*> made;  // of those given up before
    for (auto [name, tensor] : all) {
        const at::TensorImpl* const own = tensor.unsafeGetTensorImpl();
        if (kept.count(own) == 0) {
            given_up_.insert(name);
            // A shape without memory: each of its elements is the same one.
            tensor.set_data(at::zeros({}, tensor.options()).expand(tensor.sizes()));
        } else if (given_up_.erase(name) > 0 && made.insert(own).second) {
            tensor.set_data(at::empty(tensor.sizes(), tensor.options()));
        }
    }
}

void TensorRegistry::add(Entry entry) {
    listings_.push_back(
        [entry = std::move(entry)](Contents& contents) { contents.entries.push_back(entry); });
}

void TensorRegistry::Contents::append(const std::string& prefix, Contents other) {
    for (Entry& entry : other.entries)
        entries.push_back(
            {{prefix + entry.named.name, std::move(entry.named.tensor)}, entry.is_parameter});
    for (const ModuleType& module : other.modules)
        modules.push_back({prefix + module.name, module.type});
}

TensorRegistry::Contents TensorRegistry::contents() const {
    Contents contents;
    for (const auto& list : listings_)
        list(contents);
    std::erase_if(contents.entries,
                  [](const Entry& entry) { return !entry.named.tensor.defined(); });
    return contents;
}

NamedTensors TensorRegistry::in_order(bool are_parameters) const {
    const Contents contents = this->contents();
    std::vector<std::string_view> names;
    std::set<std::string_view> seen;
    std::vector<std::size_t> all, order;
    for (const Entry& entry : contents.entries) {
        all.push_back(names.size());
        names.push_back(entry.named.name);
        if (!seen.insert(entry.named.name).second)
            throw BadConfig("the model registers '" + entry.named.name + "' twice",
                            "a file could hold one of both only",
                            "give each parameter and buffer a name of its own");
    }
    append_node(names, all, 0, order);
    std::vector<NamedTensor> result;
    for (const std::size_t i : order)
        if (contents.entries[i].is_parameter == are_parameters)
            result.push_back(contents.entries[i].named);
    return NamedTensors{std::move(result)};
}

void TensorRegistry::check_no_batch_statistics() const {
    const auto refuse = [](const std::string& name) {
        throw BadConfig("the model's module '" + name + "' keeps batch statistics",
                        "its output for one sample depends on the others of its micro-batch, so no "
                        "weighting makes unlike shares equal to one device",
                        "use a normalisation within the sample: LayerNorm or GroupNorm");
    };
    constexpr std::string_view means = "running_mean";
    const Contents contents = this->contents();
    for (const ModuleType& module : contents.modules)
        if (module.type.starts_with("torch::nn::BatchNorm"))
            refuse(module.name);
    for (const auto& [named, is_parameter] : contents.entries) {
        const std::size_t dot = named.name.rfind('.');
        if (!is_parameter && named.name.substr(dot + 1) == means)  // npos + 1 is 0
            refuse(dot == std::string::npos ? "" : named.name.substr(0, dot));
    }
}

}  // namespace hetseq
