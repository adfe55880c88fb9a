#include "hetseq/model/model.hpp"

#include <cmath>
#include <set>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

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

/// Replaces what the parameters and buffers of `model` hold.
template <class Convert>
void convert_tensors(const Model& model, const Convert& convert) {
    const at::NoGradGuard no_grad;
    for (const std::vector<at::Tensor>& tensors : {model.parameters(), model.buffers()})
        for (at::Tensor tensor : tensors)
            if (tensor.defined())
                tensor.set_data(convert(tensor));
}

at::ScalarType converted_type(const at::Tensor& tensor, at::ScalarType dtype) {
    return tensor.is_floating_point() ? dtype : tensor.scalar_type();
}

}  // namespace

void Model::to(at::Device device, at::ScalarType dtype) {
    convert_tensors(*this, [&](const at::Tensor& tensor) {
        return tensor.to(device, converted_type(tensor, dtype));
    });
}

void Model::to(at::ScalarType dtype) {
    convert_tensors(
        *this, [&](const at::Tensor& tensor) { return tensor.to(converted_type(tensor, dtype)); });
}

std::vector<Prediction> Model::predict(const MicroBatch&) {
    return {};
}

double Model::learning_rate_factor(const std::string&) const {
    return 1;
}

bool Model::decays(const std::string& parameter_name) const {
    const at::Tensor parameter = find_parameter(parameter_name);
    return parameter.defined() && parameter.dim() >= 2;
}

std::vector<CompanionFile> Model::companion_files() const {
    const std::string config = config_json();
    return config.empty() ? std::vector<CompanionFile>{}
                          : std::vector<CompanionFile>{{"config.json", config}};
}

std::vector<NamedTensor> Model::stored_tensors() const {
    std::vector<NamedTensor> tensors;
    std::set<const at::TensorImpl*> seen;
    for (const NamedTensors& items : {named_parameters(), named_buffers()})
        for (const NamedTensor& item : items)
            if (item.tensor.defined() && seen.insert(item.tensor.unsafeGetTensorImpl()).second)
                tensors.push_back(item);
    return tensors;
}

InitialDistribution Model::initial_distribution(const std::string& name) const {
    const bool is_bias = ends_with(name, "bias");
    const std::string weight_name = is_bias ? name.substr(0, name.size() - 4) + "weight" : name;
    const at::Tensor weight = find_parameter(weight_name);
    const std::int64_t inputs = weight.defined() ? fan_in(weight) : 0;
    if (inputs > 0)
        return {InitialDistribution::Kind::uniform, 1 / std::sqrt(static_cast<double>(inputs))};
    return {InitialDistribution::Kind::constant, is_bias ? 0.0 : 1.0};
}

}  // namespace hetseq
