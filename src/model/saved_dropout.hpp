#pragma once

#include <cstdint>

#include <torch/csrc/autograd/custom_function.h>

#include "hetseq/model/dropout.hpp"

namespace hetseq::detail {

/// All that a mask depends on besides tensors.
struct SavedDropout {
    double p = 0;
    DropoutKey key;
};

/// Keeps it for backward.
inline void save_dropout(torch::autograd::AutogradContext& context,
                         double p,
                         const DropoutKey& key) {
    context.saved_data["p"] = p;
    context.saved_data["seed"] = static_cast<std::int64_t>(key.seed);
    context.saved_data["update"] = key.update;
    context.saved_data["layer"] = static_cast<std::int64_t>(key.layer);
}

inline SavedDropout saved_dropout(torch::autograd::AutogradContext& context) {
    const auto number = [&](const char* name) { return context.saved_data[name].toInt(); };
    return {context.saved_data["p"].toDouble(),
            {static_cast<std::uint64_t>(number("seed")),
             number("update"),
             static_cast<std::uint32_t>(number("layer"))}};
}

}  // namespace hetseq::detail
