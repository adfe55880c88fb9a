#pragma once

#include <vector>

#include "hetseq/util/rank_time.hpp"

namespace hetseq {

class HostComm;

/// A rank's own times [ms] since the last line of metrics.jsonl.
class IntervalTimes {
public:
    /// Adds an update's times.
    void add(const RankTimes& times);
    /// Adds one time, such as one that is known later than the others of its update.
    void add(RankTime time, double ms);

    /// Returns each rank's means, in rank order, and begins anew. A mean is not a number where a
    /// rank has none; the list is empty where no rank has any. Collective over `world`.
    ByRankTime<std::vector<double>> take(const HostComm& world);

private:
    struct Sum {
        double ms = 0;
        int count = 0;
    };
    ByRankTime<Sum> sums_;
};

}  // namespace hetseq
