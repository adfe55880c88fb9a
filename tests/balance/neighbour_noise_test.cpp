#include <algorithm>
#include <array>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "hetseq/balance/speed_tracker.hpp"

namespace hetseq {
namespace {

using Units = std::vector<std::int64_t>;

// A process that takes one of two cores for 0.1 to 5 s, half of the time.
class Neighbour {
public:
    /// `stays`: chance that it comes back to the core that it left.
    Neighbour(unsigned seed, double stays) : random_{seed}, stays_{stays} {}

    /// The core that it is on at `ms`, which never falls; -1: none.
    int core_at(double ms) {
        while (ms >= until_ms_) {
            is_there_ = !is_there_;
            if (is_there_ && !std::bernoulli_distribution(stays_)(random_))
                core_ = std::bernoulli_distribution(0.5)(random_) ? 1 : 0;
            until_ms_ += std::uniform_real_distribution(100.0, 5000.0)(random_);
        }
        return is_there_ ? core_ : -1;
    }

private:
    std::mt19937 random_;
    double stays_;
    bool is_there_ = true;
    int core_ = 0;
    double until_ms_ = 0;
};

// Two like ranks of a core each beside a neighbour that takes about half of one's core, with a
// jitter of 6 % and single updates that take 2 to 8 times as long.
class DisturbedPair {
public:
    DisturbedPair(double step_ms, double stays, unsigned seed)
        : costs_(2, cost(step_ms)),
          tracker_{costs_, {.kinds = {0, 0}}},
          neighbour_{seed, stays},
          random_{seed + 1000} {}

    void run(int updates) {
        for (int i = 0; i < updates; ++i)
            step();
    }
    void set_speed(std::size_t rank, double speed) { slowdown_[rank] = 1 / speed; }

    const std::vector<int>& cuts() const { return cuts_; }  // the updates after which it was cut
    const Units& allocation() const { return allocation_; }
    int updates() const { return updates_; }
    double ms() const { return ms_; }              // of all updates, as cut
    double equal_ms() const { return equal_ms_; }  // of the same updates, cut in two halves

private:
    static constexpr std::int64_t half = 32;

    static StepCost cost(double step_ms) {
        return {.start_ms = 0.1 * step_ms, .unit_ms = 0.9 * step_ms / half, .micro_batch = half};
    }

    double disturbance(bool has_neighbour) {
        double factor = std::lognormal_distribution(0.0, 0.06)(random_);
        if (std::bernoulli_distribution(0.01)(random_))
            factor *= std::uniform_real_distribution(2.0, 8.0)(random_);
        const double share = std::uniform_real_distribution(0.45, 0.55)(random_);
        return has_neighbour ? factor / share : factor;
    }

    void step() {
        const int core = neighbour_.core_at(ms_);
        std::array<double, 2> ms{};
        double equal_ms = 0;
        for (std::size_t r = 0; r < 2; ++r) {
            const double factor = slowdown_[r] * disturbance(core == static_cast<int>(r));
            ms[r] = factor * costs_[r].time_ms(allocation_[r]);
            equal_ms = std::max(equal_ms, factor * costs_[r].time_ms(half));
        }
        ms_ += std::max(ms[0], ms[1]);
        equal_ms_ += equal_ms;
        ++updates_;
        tracker_.observe(ms, allocation_);
        if (auto better = tracker_.propose(allocation_)) {
            allocation_ = std::move(*better);
            cuts_.push_back(updates_);
        }
    }

    std::vector<StepCost> costs_;
    SpeedTracker tracker_;
    Neighbour neighbour_;
    std::mt19937 random_;
    std::array<double, 2> slowdown_{1, 1};
    Units allocation_{half, half};
    std::vector<int> cuts_;
    int updates_ = 0;
    double ms_ = 0, equal_ms_ = 0;
};

struct Totals {
    int cuts = 0;
    int pairs_of_cuts = 0;  // within 400 updates
    double over_equal = 0;  // time over that of two halves
};

Totals disturbed_runs(double step_ms, double stays, int runs, int updates) {
    Totals totals;
    double ms = 0, equal_ms = 0;
    for (int run = 0; run < runs; ++run) {
        DisturbedPair pair(step_ms, stays, static_cast<unsigned>(run));
        pair.run(updates);
        ms += pair.ms();
        equal_ms += pair.equal_ms();
        const std::vector<int>& cuts = pair.cuts();
        totals.cuts += static_cast<int>(cuts.size());
        for (std::size_t i = 1; i < cuts.size(); ++i)
            totals.pairs_of_cuts += cuts[i] - cuts[i - 1] < 400 ? 1 : 0;
    }
    totals.over_equal = ms / equal_ms;
    return totals;
}

TEST(NeighbourNoiseTest, CostsNothingAgainstEqualSharesAndHardlyACut) {
    constexpr int runs = 5, updates = 2000;
    for (const double step_ms : {5.0, 10.0, 20.0, 50.0})
        for (const double stays : {0.0, 0.5, 1.0}) {
            const Totals totals = disturbed_runs(step_ms, stays, runs, updates);

            // Of 25 stretches of 400 updates.
            EXPECT_LE(totals.cuts, 5) << step_ms << " ms, stays " << stays;
            EXPECT_LE(totals.pairs_of_cuts, 1) << step_ms << " ms, stays " << stays;
            EXPECT_LE(totals.over_equal, 1.01) << step_ms << " ms, stays " << stays;
        }
}

TEST(NeighbourNoiseTest, ANeighbourThatAlwaysComesToOneCoreIsMadeRoomFor) {
    EXPECT_LE(disturbed_runs(100, 1, 5, 3000).over_equal, 0.985);
}

// As a job of a batch of 64 or 128 would: an update of 20 ms, of 35 ms.
TEST(NeighbourNoiseTest, AThrottleIsAnsweredWithin16UpdatesAllTheSame) {
    for (const double step_ms : {20.0, 35.0, 700.0})
        for (unsigned seed = 0; seed < 20; ++seed) {
            DisturbedPair pair(step_ms, 0.5, seed);
            pair.run(50 + static_cast<int>(seed));
            const std::size_t cuts = pair.cuts().size();
            const int begin = pair.updates();
            const std::int64_t units = pair.allocation()[1];
            pair.set_speed(1, 0.3);

            pair.run(60);

            ASSERT_GT(pair.cuts().size(), cuts) << step_ms << " ms, seed " << seed;
            EXPECT_LE(pair.cuts()[cuts] - begin, 16) << step_ms << " ms, seed " << seed;
            EXPECT_LT(pair.allocation()[1], 0.7 * static_cast<double>(units));
        }
}

}  // namespace
}  // namespace hetseq
