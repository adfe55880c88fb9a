#include "nearest_cut.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "hetseq/util/error.hpp"

#include "device_counts.hpp"

namespace hetseq {

namespace {

constexpr double impossible = std::numeric_limits<double>::infinity();

bool comes_before(const std::vector<ChainStage>& a, const std::vector<ChainStage>& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
}

class OvershootTable {
public:
    explicit OvershootTable(const ChainCosts& costs)
        : costs_{costs},
          counts_{costs.problem()},
          least_mb_(counts_.ways() * (costs.units() + 1), impossible) {
        least_mb(0, costs.units()) = -impossible;
        for (std::size_t way = 1; way < counts_.ways(); ++way)
            for (std::size_t begin = 0; begin < costs.units(); ++begin)
                for (std::size_t c = 0; c < costs.classes(); ++c)
                    for (std::size_t end = begin + 1; end <= costs.units(); ++end)
                        least_mb(way, begin) =
                            std::min(least_mb(way, begin), overshoot_mb(way, {c, begin, end}));
    }

    std::vector<ChainStage> nearest() const {
        double most_mb = impossible;
        for (std::size_t way = 0; way < counts_.ways(); ++way)
            most_mb = std::min(most_mb, least_mb(way, 0));
        HETSEQ_ASSERT(most_mb < impossible);
        std::vector<ChainStage> best;
        for (std::size_t way = 0; way < counts_.ways(); ++way)
            if (least_mb(way, 0) == most_mb)
                if (auto cut = stages_of(way, most_mb); best.empty() || comes_before(cut, best))
                    best = std::move(cut);
        return best;
    }

private:
    // The largest of this stage and all that follow it; `way`: the devices of all these.
    double overshoot_mb(std::size_t way, const ChainStage& stage) const {
        if (counts_.used(way, stage.device_class) == 0)
            return impossible;
        const double own_mb = costs_.memory_mb(stage, counts_.total(way)) -
                              costs_.problem().devices[stage.device_class].memory_mb;
        const std::size_t rest = counts_.with_one_fewer(way, stage.device_class);
        return std::max(own_mb, least_mb(rest, stage.end));
    }

    std::vector<ChainStage> stages_of(std::size_t way, double most_mb) const {
        std::vector<ChainStage> stages;
        for (std::size_t begin = 0; begin < costs_.units();) {
            stages.push_back(first_within(way, begin, most_mb));
            way = counts_.with_one_fewer(way, stages.back().device_class);
            begin = stages.back().end;
        }
        return stages;
    }

    ChainStage first_within(std::size_t way, std::size_t begin, double most_mb) const {
        for (std::size_t c = 0; c < costs_.classes(); ++c)
            for (std::size_t end = begin + 1; end <= costs_.units(); ++end)
                if (overshoot_mb(way, {c, begin, end}) <= most_mb)
                    return {c, begin, end};
        throw InternalError("no stage overshoots as little as the table says");
    }

    double& least_mb(std::size_t way, std::size_t begin) {
        return least_mb_[way * (costs_.units() + 1) + begin];
    }
    double least_mb(std::size_t way, std::size_t begin) const {
        return least_mb_[way * (costs_.units() + 1) + begin];
    }

    const ChainCosts& costs_;
    DeviceCounts counts_;
    std::vector<double> least_mb_;  // of the units from one to the last, on all devices of a way
};

}  // namespace

std::vector<ChainStage> nearest_cut(const ChainCosts& costs) {
    return OvershootTable{costs}.nearest();
}

}  // namespace hetseq
