#include "hetseq/model/model.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "hetseq/util/error.hpp"

namespace hetseq {

namespace {

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

void Model::to(at::Device device, Precision precision) {
    to(device, parameter_type(precision));
    arithmetic_ = {precision, device.type()};
}

void Model::recompute(std::int64_t layers) {
    HETSEQ_ASSERT(layers >= 0 && layers <= recomputable_layers());
    recomputed_layers_ = layers;
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

}  // namespace hetseq
