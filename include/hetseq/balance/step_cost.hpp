#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "hetseq/balance/step_table.hpp"

namespace hetseq {

/// The time that one rank's part of an update takes, without communication (docs/allocation.md):
/// T(0) = 0, T(b) = scale (start_ms + ceil(b / micro_batch) micro_batch_ms + b unit_ms), or T(b) =
/// scale table(b) where there is a table; the three numbers of the line are then ignored.
/// `update_ms` is added in both cases if there is any work.
struct StepCost {
    double start_ms = 0;           // A, once an update
    double micro_batch_ms = 0;     // a, for each micro-batch
    double unit_ms = 1;            // c, for each unit
    std::int64_t micro_batch = 1;  // m, units; 0 declares a rank without work
    std::int64_t max_units = std::numeric_limits<std::int64_t>::max();
    double scale = 1;      // > 0; how much slower than the line or the table the rank is now
    double update_ms = 0;  // once an update, whatever the scale: what is not forward and backward
    std::int64_t recomputed_layers = 0;  // of the model, which backward computes again meanwhile
    double forward_part = 1.0 / 3;       // of a micro-batch's time
    double activations_mb = 0;           // of a full micro-batch [MiB]; 0: not measured
    StepTable table = {};                // measured times, for a device that no line describes

    /// Time for `units` >= 0 [ms].
    double time_ms(std::int64_t units) const;
    /// The part that comes once an update: A (0 with a table) and `update_ms` [ms].
    double fixed_ms() const;
    /// The most units whose time is at most `ms`, no more than `limit`.
    std::int64_t units_within(double ms, std::int64_t limit) const;
    /// Units per millisecond once started, with full micro-batches; 0 for a rank without work,
    /// infinite if units cost nothing.
    double rate() const;
};

/// True if computing all layers again in backward, as much more work as forward is (Chen et al.
/// 2016), costs less than twice as many micro-batches would, for a rank that takes `units` in
/// `micro_batches`.
bool recomputing_costs_less(const StepCost& cost, std::int64_t units, std::int64_t micro_batches);

/// The same device with micro-batches of at most `micro_batch` > 0 units.
StepCost limited_to(StepCost cost, std::int64_t micro_batch);

/// Ranks that declare capacities (samples or units a micro-batch; 0: no work) are taken to be as
/// fast as those.
std::vector<StepCost> declared_costs(std::span<const std::int64_t> capacities);

/// The same speed for every rank that declares any capacity.
std::vector<StepCost> equal_costs(std::span<const std::int64_t> capacities);

}  // namespace hetseq
