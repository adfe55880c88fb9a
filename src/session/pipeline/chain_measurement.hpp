#pragma once

#include <cstdint>
#include <vector>

#include "hetseq/train/pipeline/unit_costs.hpp"

namespace hetseq {

class Feed;
class HostComm;
class Model;
struct RunSettings;

/// Micro-batches of one size, as the units of a model were measured with them.
struct MeasuredSize {
    std::int64_t micro_batch = 0;    // samples, or padded tokens
    std::int64_t micro_batches = 0;  // of a full batch
    std::int64_t batch = 0;          // it, in these: samples, or tokens with the padding that they
                                     // have then
    std::vector<UnitCost> costs = {};  // by unit, on this rank's device
};

/// Units that a micro-batch of this size has in a full batch of `batch` units: of rows of unequal
/// length they are not quite full.
std::int64_t filled(const MeasuredSize& size, std::int64_t batch, bool is_ragged);

/// Collective. Measures the units of `model`, which then holds none, in micro-batches of `capacity`
/// of the first batch of `feed`, and of some smaller sizes: each half of the one before, but for
/// those that cut the batch no further (`filled`). Largest first. Throws on all ranks.
std::vector<MeasuredSize> measure_chain(const HostComm& world,
                                        const RunSettings& settings,
                                        Feed& feed,
                                        Model& model,
                                        std::int64_t capacity);

}  // namespace hetseq
