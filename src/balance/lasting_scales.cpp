#include "lasting_scales.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "hetseq/balance/median.hpp"
#include "hetseq/balance/paired_gain.hpp"

#include "middle_mean.hpp"

namespace hetseq {

namespace {

constexpr double lasting_spread = 0.06;  // of a batch's offset, as if 3 had shown it
constexpr double unlike_errors = 3;

std::vector<std::vector<std::size_t>> members_by_kind(const std::vector<int>& kinds) {
    std::map<int, std::vector<std::size_t>> members;
    for (std::size_t r = 0; r < kinds.size(); ++r)
        members[kinds[r]].push_back(r);
    std::vector<std::vector<std::size_t>> lists;
    for (auto& [kind, ranks] : members)
        lists.push_back(std::move(ranks));
    return lists;
}

}  // namespace

LastingScales::LastingScales(const std::deque<std::vector<TimeBlock>>& batches,
                             std::vector<double> believed,
                             std::vector<bool> is_idle,
                             std::vector<int> kinds)
    : batches_{batches},
      believed_{std::move(believed)},
      is_idle_{std::move(is_idle)},
      members_{members_by_kind(kinds)},
      ratios_(believed_.size()) {}

void LastingScales::take_batch() {
    const std::vector<TimeBlock>& batch = batches_[batches_.size() - 1 - taken_];
    ++taken_;
    std::vector<double> scales = believed_;
    std::vector<double> more, merged;
    for (std::size_t r = 0; r < scales.size(); ++r) {
        more.clear();
        for (const TimeBlock& block : batch)
            if (block.knows(r) && !is_idle_[r])
                more.push_back(block.ratio(r));
        if (more.empty())
            continue;
        std::sort(more.begin(), more.end());
        scales[r] = middle_mean_of_sorted(more);
        merged.resize(ratios_[r].size() + more.size());
        std::merge(ratios_[r].begin(), ratios_[r].end(), more.begin(), more.end(), merged.begin());
        ratios_[r].swap(merged);
    }
    offsets_.push_front(offsets(scales));
}

std::vector<double> LastingScales::offsets(const std::vector<double>& scales) const {
    std::vector<double> result(scales.size());
    for (const std::vector<std::size_t>& ranks : members_) {
        std::vector<double> logs;
        for (const std::size_t r : ranks)
            logs.push_back(std::log(scales[r]));
        const double middle = median(logs);
        for (std::size_t i = 0; i < ranks.size(); ++i)
            result[ranks[i]] = logs[i] - middle;
    }
    return result;
}

// A rank that differs from its kind is a group of its own.
std::vector<int> LastingScales::groups() const {
    std::vector<int> groups(believed_.size());
    std::iota(groups.begin(), groups.end(), 0);
    std::vector<double> values(offsets_.size());
    for (const std::vector<std::size_t>& ranks : members_)
        for (const std::size_t r : ranks) {
            for (std::size_t batch = 0; batch < values.size(); ++batch)
                values[batch] = offsets_[batch][r];
            const Estimate offset = estimate(values, lasting_spread);
            if (std::abs(offset.mean) < unlike_errors * offset.error)
                groups[r] = static_cast<int>(groups.size() + ranks.front());
        }
    return groups;
}

std::vector<double> LastingScales::scales() const {
    std::vector<double> scales = believed_;
    for (std::size_t r = 0; r < scales.size(); ++r)
        if (!ratios_[r].empty())
            scales[r] = middle_mean_of_sorted(ratios_[r]);
    pool(scales, groups());
    return scales;
}

}  // namespace hetseq
