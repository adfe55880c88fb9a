#include "hetseq/model/files/stored_model.hpp"

#include <cmath>
#include <set>

#include <ATen/core/Tensor.h>

namespace hetseq {

namespace {

bool ends_with(const std::string& text, const std::string& end) {
    return text.size() >= end.size() &&
           text.compare(text.size() - end.size(), end.size(), end) == 0;
}

/// Inputs that one output of the layer sums over; 0 where the weight is not a matrix.
std::int64_t fan_in(const at::Tensor& weight) {
    return weight.dim() >= 2 ? weight[0].numel() : 0;
}

}  // namespace

std::vector<CompanionFile> StoredModel::companion_files() const {
    const std::string config = config_json();
    return config.empty() ? std::vector<CompanionFile>{}
                          : std::vector<CompanionFile>{{"config.json", config}};
}

std::vector<NamedTensor> StoredModel::stored_tensors() const {
    std::vector<NamedTensor> tensors;
    std::set<const at::TensorImpl*> seen;
    for (const NamedTensors& items : {named_parameters(), named_buffers()})
        for (const NamedTensor& item : items)
            if (item.tensor.defined() && seen.insert(item.tensor.unsafeGetTensorImpl()).second)
                tensors.push_back(item);
    return tensors;
}

std::vector<NamedTensor> StoredModel::held_tensors() const {
    std::set<const c10::StorageImpl*> given_up;
    for (const auto& [name, parameter] : named_parameters())
        if (!is_held(name))
            given_up.insert(parameter.storage().unsafeGetStorageImpl());
    std::vector<NamedTensor> tensors = stored_tensors();
    std::erase_if(tensors, [&](const NamedTensor& stored) {
        return given_up.count(stored.tensor.storage().unsafeGetStorageImpl()) != 0;
    });
    return tensors;
}

InitialDistribution StoredModel::initial_distribution(const std::string& name) const {
    const bool is_bias = ends_with(name, "bias");
    const std::string weight_name = is_bias ? name.substr(0, name.size() - 4) + "weight" : name;
    const at::Tensor weight = find_parameter(weight_name);
    const std::int64_t inputs = weight.defined() ? fan_in(weight) : 0;
    if (inputs > 0)
        return {InitialDistribution::Kind::uniform, 1 / std::sqrt(static_cast<double>(inputs))};
    return {InitialDistribution::Kind::constant, is_bias ? 0.0 : 1.0};
}

}  // namespace hetseq
