#pragma once

#include <cstddef>
#include <vector>

#include "chain_costs.hpp"
#include "device_counts.hpp"

namespace hetseq {

/// The least latencies of cuts that memory allows and whose period is at most a limit.
class LatencyTable {
public:
    LatencyTable(const ChainCosts& costs, const DeviceCounts& counts, double period_ms);

    /// The `most` cuts of least latency, in order, or all if they are fewer. Ties go to fewer
    /// devices, then in the order of their stages.
    std::vector<std::vector<ChainStage>> best(std::size_t most) const;

private:
    // Stages [0, begin) are placed. `way`: the devices that the rest has, the next of which is of
    // class `next`.
    struct Prefix {
        double least_ms = 0;           // of the whole cut, latency
        std::size_t devices = 0;       // of the whole cut
        std::vector<std::size_t> key;  // class and end by stage, then `next`
        double before_ms = 0;          // of what is placed
        std::size_t begin = 0, way = 0, next = 0;

        bool operator>(const Prefix& other) const;
    };
    class Queue;

    void place(std::size_t way, std::size_t end, std::size_t device_class);
    double behind_ms(std::size_t way, std::size_t end, std::size_t device_class) const;
    void expand(const Prefix& prefix, Queue& queue) const;

    bool allows(const ChainStage& stage, std::size_t in_flight) const {
        return costs_.stage_ms(stage) <= period_ms_ && costs_.most_in_flight(stage) >= in_flight;
    }
    double& least_ms(std::size_t way, std::size_t device_class, std::size_t begin) {
        return least_ms_[(way * costs_.classes() + device_class) * costs_.units() + begin];
    }
    double least_ms(std::size_t way, std::size_t device_class, std::size_t begin) const {
        return least_ms_[(way * costs_.classes() + device_class) * costs_.units() + begin];
    }
    double link_ms(std::size_t unit, std::size_t front, std::size_t behind) const {
        return link_ms_[(unit * costs_.classes() + front) * costs_.classes() + behind];
    }
    void add_links();

    const ChainCosts& costs_;
    const DeviceCounts& counts_;
    double period_ms_;
    std::vector<double> link_ms_;  // both ways; infinite beyond the period
    // Of the units from one to the last, on all devices of a way, the first of them of a class.
    std::vector<double> least_ms_;
};

}  // namespace hetseq
