#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "hetseq/model/tensor_registry.hpp"

namespace hetseq {

/// All trainable parameters of a model as views into one flat tensor, their gradients likewise.
/// Laid out in reverse registration order, in which backward finishes them, each padded to 64 bytes
/// with zeros.
class FlatParameters {
public:
    struct Parameter {
        std::string name;
        at::Tensor tensor;        // the model's own, now a view into `values()`
        std::int64_t offset = 0;  // elements
        std::int64_t numel = 0;   // without padding
        bool decays = true;       // weight decay applies
        double learning_rate_factor = 1;
    };

    /// Moves the parameters of `model` (one floating dtype, one device) into flat storage. A tied
    /// parameter counts once. `learning_rate_factor`: what the learning rate is multiplied by for a
    /// parameter; empty: 1 for all. Throws BadConfig where none is trained, and for a factor that
    /// is negative or not finite.
    FlatParameters(const TensorRegistry& model,
                   const std::function<bool(const std::string&)>& decays,
                   const std::function<double(const std::string&)>& learning_rate_factor = {});

    const std::vector<Parameter>& parameters() const noexcept {
        return parameters_;
    }                                                    // in layout order
    at::Tensor values() const { return values_; }        // (n)
    at::Tensor gradients() const { return gradients_; }  // (n), padding always zero
    void zero_gradients();

    /// Runs of neighbours that share `decays` and the factor.
    struct Segment {
        std::int64_t offset = 0;
        std::int64_t numel = 0;
        bool decays = true;
        double learning_rate_factor = 1;
    };
    const std::vector<Segment>& segments() const noexcept { return segments_; }

private:
    std::vector<Parameter> parameters_;
    std::vector<Segment> segments_;
    at::Tensor values_, gradients_;
};

}  // namespace hetseq
