#include "hetseq/model/model.hpp"

#include <iterator>
#include <set>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include "hetseq/util/error.hpp"

namespace hetseq {

namespace {

/// Replaces what the parameters and buffers of `model` hold.
template <class Convert>
void convert_tensors(const Model& model, const Convert& convert) {
    const at::NoGradGuard no_grad;
    // Of a parameter that is not held there is one element alone.
    for (auto [name, tensor] : model.named_parameters())
        tensor.set_data(model.is_held(name)
                            ? convert(tensor)
                            : convert(tensor.as_strided({}, {})).expand(tensor.sizes()));
    for (at::Tensor tensor : model.buffers())
        tensor.set_data(convert(tensor));
}

at::ScalarType converted_type(const at::Tensor& tensor, at::ScalarType dtype) {
    return tensor.is_floating_point() ? dtype : tensor.scalar_type();
}

/// Those of `units` that can be computed again.
std::vector<std::size_t> layers_of(const std::vector<ChainUnit>& chain, UnitRange units) {
    std::vector<std::size_t> layers;
    for (std::size_t unit = units.begin; unit < units.end; ++unit)
        if (chain[unit].recomputes)
            layers.push_back(unit);
    return layers;
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

Carried Model::run_units(UnitRange units,
                         const Carried&,
                         const MicroBatch& batch,
                         const ForwardContext& context) {
    HETSEQ_ASSERT(units.empty());
    return {.result = forward(batch, context)};
}

void Model::hold(UnitRange units) {
    const std::vector<ChainUnit> chain = this->chain();
    HETSEQ_ASSERT(units.end <= chain.size());
    std::set<std::string> names;
    for (std::size_t unit = units.begin; unit < units.end; ++unit)
        names.insert(chain[unit].parameters.begin(), chain[unit].parameters.end());
    keep_only(names);
    held_units_ = units;
    recompute(0);
}

UnitRange Model::held_units() const {
    return held_units_.value_or(UnitRange{0, chain().size()});
}

std::int64_t Model::recomputable_layers() const {
    return std::ssize(layers_of(chain(), held_units()));
}

void Model::recompute(std::int64_t layers) {
    HETSEQ_ASSERT(layers >= 0 && layers <= recomputable_layers());
    const std::vector<std::size_t> of_chain = layers_of(chain(), held_units());
    recomputed_layers_ = layers;
    recomputed_end_ =
        layers == 0 || of_chain.empty() ? 0 : of_chain[static_cast<std::size_t>(layers) - 1] + 1;
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
