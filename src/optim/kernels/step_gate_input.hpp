#pragma once

#include <cstdint>

namespace hetseq::detail {

/// Memory of a GPU, as in `StepGate`.
struct StepGateInput {
    const double* status = nullptr;
    std::int64_t count = 0;
    const double* norm = nullptr;
    double clip_norm = 0;
};

}  // namespace hetseq::detail
