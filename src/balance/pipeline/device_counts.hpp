#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "hetseq/balance/pipeline/chain_problem.hpp"

namespace hetseq {

/// Numbers the ways to use some devices of each class: 0 uses none, and what uses one device more
/// has a higher number. Of a class, no more count than there are units.
class DeviceCounts {
public:
    explicit DeviceCounts(const ChainProblem& problem) {
        for (const ChainDevices& devices : problem.devices) {
            steps_.push_back(ways_);
            radices_.push_back(std::min(devices.count, problem.units()) + 1);
            ways_ *= radices_.back();
        }
    }

    std::size_t ways() const noexcept { return ways_; }
    std::size_t used(std::size_t way, std::size_t device_class) const {
        return way / steps_[device_class] % radices_[device_class];
    }
    bool has_more(std::size_t way, std::size_t device_class) const {
        return used(way, device_class) + 1 < radices_[device_class];
    }
    std::size_t with_one_more(std::size_t way, std::size_t device_class) const {
        return way + steps_[device_class];
    }
    std::size_t with_one_fewer(std::size_t way, std::size_t device_class) const {
        return way - steps_[device_class];
    }
    std::size_t total(std::size_t way) const {
        std::size_t sum = 0;
        for (std::size_t c = 0; c < radices_.size(); ++c)
            sum += used(way, c);
        return sum;
    }

private:
    std::vector<std::size_t> steps_, radices_;  // by class
    std::size_t ways_ = 1;
};

}  // namespace hetseq
