#pragma once

#include <cstdint>

#include "hetseq/plan/cluster.hpp"

namespace hetseq {

inline constexpr double bytes_of_fp32 = 4;  // as values, gradients and state are

/// Forward and backward of such a layer for a micro-batch of `units` on the device [ms].
double layer_ms(const Cluster& cluster,
                const LayerClass& layer,
                const DeviceClass& device,
                std::int64_t units);

/// Gives the model the size of its layers, and each device that has no times of its own those of
/// all layers, in the largest micro-batch with which it holds the model; nothing where no layers
/// are described. Throws BadConfig if a device of the nodes has no times of some layer.
void fill_from_layers(Cluster& cluster);

}  // namespace hetseq
