#pragma once

#include <cstdint>

namespace hetseq::detail {

/// As in `StepGate`.
struct GradientLimits {
    double clip_norm = 0;
    double scale = 1;
};

/// Memory of a GPU, as in `StepGate`.
struct StepGateInput {
    const double* status = nullptr;
    std::int64_t count = 0;
    const double* norm = nullptr;
    GradientLimits limits = {};
};

}  // namespace hetseq::detail
