#pragma once

#include <optional>

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include "hetseq/util/precision.hpp"

namespace hetseq {

/// How a model computes.
struct Arithmetic {
    Precision precision = Precision::fp32;
    at::DeviceType device = at::kCPU;
    friend bool operator==(const Arithmetic&, const Arithmetic&) = default;
};

/// The type of parameters and gradients.
at::ScalarType parameter_type(Precision precision);
/// The type of products under autocast; none: there is no autocast.
std::optional<at::ScalarType> autocast_type(Precision precision);

}  // namespace hetseq
