#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace torch::nn {
class Module;
}

namespace hetseq {

/// All trainable parameters of a model as views into one flat tensor, their gradients likewise.
/// Laid out in reverse registration order, in which backward finishes them, each padded to 64 bytes
/// with zeros.
class FlatParameters {
public:
    struct Parameter {
        std::string name;
        at::Tensor tensor;        // the module's own, now a view into `values()`
        std::int64_t offset = 0;  // elements
        std::int64_t numel = 0;   // without padding
        bool decays = true;       // weight decay applies
    };

    /// Moves the parameters of `module` (one floating dtype, one device) into flat storage. A tied
    /// parameter counts once.
    FlatParameters(torch::nn::Module& module,
                   const std::function<bool(const std::string&)>& decays);

    const std::vector<Parameter>& parameters() const noexcept {
        return parameters_;
    }                                                    // in layout order
    at::Tensor values() const { return values_; }        // (n)
    at::Tensor gradients() const { return gradients_; }  // (n), padding always zero
    void zero_gradients();

    /// Runs of neighbours that share `decays`, so that an optimizer updates each in one call.
    struct Segment {
        std::int64_t offset = 0;
        std::int64_t numel = 0;
        bool decays = true;
    };
    const std::vector<Segment>& segments() const noexcept { return segments_; }

private:
    std::vector<Parameter> parameters_;
    std::vector<Segment> segments_;
    at::Tensor values_, gradients_;
};

}  // namespace hetseq
