#pragma once

#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>

#include "hetseq/model/model.hpp"

namespace hetseq::test {

/// A model with a trained and a frozen parameter, and constant buffers of several types in a child
/// module. `shift` is added to all that is not trained.
class MixedModel : public Model {
public:
    explicit MixedModel(std::int64_t shift = 0) {
        trained = register_parameter("trained", at::ones({3, 2}));
        frozen = register_parameter(
            "frozen", at::arange(4, at::kFloat) + static_cast<double>(shift), false);
        register_parameter("tied", trained);
        register_buffer("table.counts",
                        at::arange(5, at::kLong) + ((std::int64_t{1} << 40) + 1 + shift));
        register_buffer("table.mask",
                        at::arange(6, at::kLong).remainder(3).eq(shift % 3).view({2, 3}));
        register_buffer("table.scales", at::full({2}, 0.1 + static_cast<double>(shift)));
    }

    at::Tensor counts() const { return named_buffers()["table.counts"]; }
    at::Tensor mask() const { return named_buffers()["table.mask"]; }
    at::Tensor scales() const { return named_buffers()["table.scales"]; }

    std::vector<std::string> loss_terms() const override { return {"loss"}; }
    std::vector<MetricSchema> metrics() const override { return {}; }
    ForwardResult forward(const MicroBatch&, const ForwardContext&) override {
        return {{(trained * scales() + frozen.sum()).sum()}, {}};
    }

    at::Tensor trained;  // (3, 2)
    at::Tensor frozen;   // (4)
};

/// True if the stored tensors of both are equal in type and every bit.
inline bool stored_alike(const Model& a, const Model& b) {
    const auto left = a.stored_tensors(), right = b.stored_tensors();
    bool alike = left.size() == right.size();
    for (std::size_t i = 0; alike && i < left.size(); ++i)
        alike = left[i].name == right[i].name &&
                left[i].tensor.scalar_type() == right[i].tensor.scalar_type() &&
                left[i].tensor.equal(right[i].tensor);
    return alike;
}

}  // namespace hetseq::test
