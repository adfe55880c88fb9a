#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hetseq {

/// A measured point: an update of `units` takes `ms`.
struct CostPoint {
    std::int64_t units = 0;
    double ms = 0;
};

/// Measured times of an update, as a nondecreasing function of its units: linear between the
/// points. The last point is a full micro-batch (or several). Beyond it the table repeats with its
/// point at 0 units, since every micro-batch starts anew: k full ones and r units take k T(m) +
/// T(r).
class StepTable {
public:
    /// No measurements.
    StepTable() = default;
    /// At most one point for each number of units >= 0, times >= 0, in any order; a point at 0
    /// units is the time of the start (0 ms if it is missing), and at least one point lies above 0.
    /// Times that fall are replaced by their mean (isotonic regression). Throws InternalError for
    /// anything else.
    explicit StepTable(std::vector<CostPoint> points);

    bool empty() const { return points_.empty(); }
    /// Ascending in units, nondecreasing in ms; the first one has 0 units.
    std::span<const CostPoint> points() const { return points_; }
    /// Time for `units` > 0 [ms].
    double time_ms(std::int64_t units) const;
    /// The units, with fractions, for which `ms` is enough; infinite for a table of zeros.
    double units_within(double ms) const;
    /// Time of a unit in full micro-batches [ms].
    double unit_ms() const;

private:
    double within_ms(std::int64_t units) const;

    std::vector<CostPoint> points_;
};

}  // namespace hetseq
