#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "hetseq/balance/step_cost.hpp"

namespace hetseq {

class BatchPlan;
class FlatParameters;
class HostComm;
class Loader;
class Model;

struct CalibrationOptions {
    double seconds = 1.5;        // a rank starts nothing that would end later,
    double updates = 5;          // or after the time of so many updates, if that is longer
    std::int64_t memory_mb = 0;  // that this rank may use; 0: its device says when it is full
    bool may_recompute = false;  // all layers of the model, where memory lacks otherwise
};

/// Collective. Measures what an update costs this rank's device, without communication. It runs
/// forward and backward on the first samples of training, in micro-batches of an eighth, a quarter,
/// half and all of the rank's capacity, and all of it cut in two. Each size runs once to warm up.
/// Then the sizes run in rounds until the time of the largest one has a standard error of 1 %, or
/// the seconds are over; after that, the largest one until it was measured three times, and others
/// that were not measured at all. Parameters, the generators of random numbers and, on return, the
/// gradients (zero) are as before.
///
/// `capacities`: samples a micro-batch, by rank; 0: a rank without work. The cost's micro-batch is
/// the capacity, or less if memory does not hold it. On a GPU this is found by trying. On a CPU
/// running out of memory kills the process, so a line through the measured peaks must stay below
/// `usable_memory` of `memory_mb`.
///
/// With `may_recompute`, where memory does not hold the largest size, all sizes are measured again
/// while backward computes the model's layers again. The faster way stays, for training too.
///
/// `known`: the cost of a rank that need not be measured.
///
/// Throws on all ranks if any rank failed: because of bad data, or too little memory for an eighth
/// of the capacity.
StepCost calibrate(const HostComm& world,
                   Model& model,
                   FlatParameters& parameters,
                   Loader& loader,
                   const BatchPlan& plan,
                   std::span<const std::int64_t> capacities,
                   const std::optional<StepCost>& known,
                   const CalibrationOptions& options);

}  // namespace hetseq
