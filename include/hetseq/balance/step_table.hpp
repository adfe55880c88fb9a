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
/// points. The last one is a full micro-batch (or several); beyond it the table repeats, its point
/// at 0 units included, since every micro-batch starts anew: k full ones and r units take k T(m) +
/// T(r).
class StepTable {
public:
    /// No measurements.
    StepTable() = default;
    /// At most one point for each number of units >= 0, times >= 0, in any order; a point at 0
    /// units is the start's time (0 ms where there is none) and at least one lies above. Times that
    /// fall are replaced by their mean (isotonic regression). Throws InternalError for anything
    /// else.
    explicit StepTable(std::vector<CostPoint> points);

    bool empty() const { return points_.empty(); }
    /// Ascending in units, nondecreasing in ms; the first one has 0 units.
    std::span<const CostPoint> points() const { return points_; }
    /// Time for `units` > 0 [ms].
    double time_ms(std::int64_t units) const;
    /// The units, with fractions, that `ms` are enough for; infinite beyond a table of zeros.
    double units_within(double ms) const;
    /// Price of a unit where micro-batches are full [ms].
    double unit_ms() const;

private:
    double within_ms(std::int64_t units) const;

    std::vector<CostPoint> points_;
};

}  // namespace hetseq
