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
    // class `next` and follows one of class `front`.
    struct Prefix {
        double least_ms = 0;           // of the whole cut, latency
        std::size_t devices = 0;       // of the whole cut
        std::vector<std::size_t> key;  // class and end by stage, then `next`
        double before_ms = 0;          // of what is placed
        std::size_t begin = 0, way = 0, next = 0, front = 0;

        bool operator>(const Prefix& other) const;
    };
    class Queue;
    // The class of the stage behind another, and the least time from the end of that one on.
    struct Behind {
        double ms = 0;
        std::size_t next = 0;
    };

    void place(std::size_t way, std::size_t end, std::size_t device_class);
    void find_behind(std::size_t way, std::size_t end, std::size_t device_class);
    bool cards_allow(std::size_t front, const ChainStage& stage, std::size_t next) const;
    void expand(const Prefix& prefix, Queue& queue) const;

    bool allows(const ChainStage& stage, std::size_t in_flight) const {
        return costs_.stage_ms(stage) <= period_ms_ && costs_.most_in_flight(stage) >= in_flight;
    }
    std::size_t index(std::size_t way,
                      std::size_t front,
                      std::size_t device_class,
                      std::size_t begin) const {
        const std::size_t of_front = fronts_ > 1 ? front : 0;
        return ((way * costs_.classes() + device_class) * costs_.units() + begin) * fronts_ +
               of_front;
    }
    double link_ms(std::size_t unit, std::size_t front, std::size_t behind) const {
        return link_ms_[(unit * costs_.classes() + front) * costs_.classes() + behind];
    }
    void add_links();
    bool cards_allow_all() const;

    const ChainCosts& costs_;
    const DeviceCounts& counts_;
    double period_ms_;
    std::vector<double> link_ms_;  // both ways; infinite beyond the period
    // By `index`: of the units from one to the last, on all devices of a way, the first of them of
    // a class, behind a stage of the class `front`. That is 0 where there is none, or where cards
    // are fast enough for all stages.
    std::vector<double> least_ms_;
    std::size_t fronts_ = 1;
    std::vector<Behind> behind_;  // least time first
};

}  // namespace hetseq
