#include "hetseq/model/model.hpp"

#include <cmath>
#include <set>

#include "hetseq/util/error.hpp"

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

bool Model::decays(const std::string& parameter_name) const {
    const auto parameters = named_parameters();
    const at::Tensor* parameter = parameters.find(parameter_name);
    return parameter != nullptr && parameter->dim() >= 2;
}

std::vector<CompanionFile> Model::companion_files() const {
    const std::string config = config_json();
    return config.empty() ? std::vector<CompanionFile>{}
                          : std::vector<CompanionFile>{{"config.json", config}};
}

std::vector<NamedTensor> Model::stored_tensors() const {
    std::vector<NamedTensor> tensors;
    std::set<const at::TensorImpl*> seen;
    for (const auto& item : named_parameters())
        if (seen.insert(item.value().unsafeGetTensorImpl()).second)
            tensors.push_back({item.key(), item.value()});
    return tensors;
}

InitialDistribution Model::initial_distribution(const std::string& name) const {
    const auto parameters = named_parameters();
    const bool is_bias = ends_with(name, "bias");
    const std::string weight_name = is_bias ? name.substr(0, name.size() - 4) + "weight" : name;
    const at::Tensor* weight = parameters.find(weight_name);
    const std::int64_t inputs = weight != nullptr ? fan_in(*weight) : 0;
    if (inputs > 0)
        return {InitialDistribution::Kind::uniform, 1 / std::sqrt(static_cast<double>(inputs))};
    return {InitialDistribution::Kind::constant, is_bias ? 0.0 : 1.0};
}

}  // namespace hetseq
