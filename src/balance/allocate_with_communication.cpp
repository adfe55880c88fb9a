#include <algorithm>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "hetseq/util/error.hpp"
#include "hetseq/balance/allocate.hpp"

namespace hetseq {

namespace {

// The search for the best number of working ranks. M(k), the least makespan of at most k working
// ranks, never rises with k; communication, as the least of all groups of at least k, never falls.
class GroupSearch {
public:
    GroupSearch(std::span<const StepCost> costs,
                std::int64_t units,
                std::span<const double> communication_ms)
        : costs_{costs},
          units_{units},
          communication_{communication_ms.begin(),
                         communication_ms.begin() + std::ssize(costs) + 1},
          by_units_(costs.size()),
          best_{allocate(costs, units)} {
        for (std::size_t k = costs.size(); k-- > 0;)
            communication_[k] = std::min(communication_[k], communication_[k + 1]);
        best_ms_ = time_ms(best_);
        std::iota(by_units_.begin(), by_units_.end(), std::size_t{0});
    }

    std::vector<std::int64_t> run() {
        search(1, costs_.size());
        return best_;
    }

private:
    double time_ms(std::span<const std::int64_t> allocation) const {
        return makespan_ms(costs_, allocation, communication_);
    }

    // Branch and bound over groups of `least` to `most` ranks. All of them have to beat what the
    // best leaves beside the smallest group's communication, and so few ranks may not manage that.
    void search(std::size_t least, std::size_t most) {
        while (least <= most) {
            const std::size_t needed = ranks_needed(limit_ms(least));
            if (needed > most)
                return;
            if (needed > least) {
                least = needed;
                continue;
            }
            const std::size_t middle = least + (most - least) / 2;
            improve(middle);
            search(middle + 1, most);
            if (middle == least)
                return;
            most = middle - 1;
        }
    }

    // Makes the best at least as good as the best of k ranks: as long as k ranks are enough to beat
    // it, it becomes the best of those that have most units then.
    void improve(std::size_t k) {
        for (std::size_t needed = ranks_needed(limit_ms(k)); needed <= k;
             needed = ranks_needed(limit_ms(k))) {
            std::vector<StepCost> chosen{costs_.begin(), costs_.end()};
            for (std::size_t i = needed; i < by_units_.size(); ++i)
                chosen[by_units_[i]].micro_batch = 0;
            std::vector<std::int64_t> better = allocate(chosen, units_);
            const double better_ms = time_ms(better);
            HETSEQ_ASSERT(better_ms < best_ms_);
            best_ = std::move(better);
            best_ms_ = better_ms;
        }
    }

    // The makespan below which k ranks beat the best, by more than rounding.
    double limit_ms(std::size_t k) const {
        const double least_gain = std::max(1e-12 * best_ms_, std::numeric_limits<double>::min());
        return best_ms_ - least_gain - communication_[k];
    }

    // How many ranks have to work for a makespan of `ms`; more than there are if all are too few.
    // Puts those ranks first in by_units_.
    std::size_t ranks_needed(double ms) {
        std::vector<std::int64_t> fits(costs_.size());
        for (std::size_t r = 0; r < costs_.size(); ++r)
            fits[r] = costs_[r].units_within(ms, units_);
        const auto more = [&](std::size_t a, std::size_t b) {
            return fits[a] != fits[b] ? fits[a] > fits[b] : a < b;
        };
        const auto sum = [&](auto begin, auto end) {
            return std::accumulate(begin, end, std::int64_t{0}, [&](std::int64_t units, auto r) {
                return units + fits[r];
            });
        };
        // Quickselect by sums: the border lies in [begin, end), the ranks before it are needed.
        auto begin = by_units_.begin();
        auto end = by_units_.end();
        std::int64_t missing = units_;
        while (begin != end) {
            const auto middle = begin + (end - begin) / 2;
            std::nth_element(begin, middle, end, more);
            const std::int64_t upper = sum(begin, middle + 1);
            if (upper >= missing) {
                end = middle;
                continue;
            }
            missing -= upper;
            begin = middle + 1;
        }
        return static_cast<std::size_t>(begin - by_units_.begin()) + 1;
    }

    std::span<const StepCost> costs_;
    std::int64_t units_;
    std::vector<double> communication_;  // [ms], of the best group of at least k ranks
    std::vector<std::size_t> by_units_;  // ranks
    std::vector<std::int64_t> best_;
    double best_ms_ = 0;
};

}  // namespace

std::vector<std::int64_t> allocate(std::span<const StepCost> costs,
                                   std::int64_t units,
                                   std::span<const double> communication_ms) {
    HETSEQ_ASSERT(communication_ms.size() > costs.size());
    if (units == 0)
        return std::vector<std::int64_t>(costs.size(), 0);
    return GroupSearch(costs, units, communication_ms).run();
}

}  // namespace hetseq
