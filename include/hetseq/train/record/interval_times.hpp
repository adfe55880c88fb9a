#pragma once

#include <vector>

#include "hetseq/util/rank_time.hpp"

namespace hetseq {

class HostComm;

/// A rank's own times [ms] since the last line of metrics.jsonl.
class IntervalTimes {
public:
    /// Of an update.
    void add(const RankTimes& times);
    /// A time that is known later than its update.
    void add_late(RankTime time, double ms);

    /// Each rank's means, in rank order, and begins anew. Not a number where a rank has none; empty
    /// where no rank has any. Collective over `world`.
    ByRankTime<std::vector<double>> take(const HostComm& world);

private:
    struct Sum {
        double ms = 0;
        int count = 0;
    };
    ByRankTime<Sum> sums_;
};

}  // namespace hetseq
