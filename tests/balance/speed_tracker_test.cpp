#include "hetseq/balance/speed_tracker.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <random>

#include <gtest/gtest.h>

#include "hetseq/balance/allocate.hpp"

#include <gmock/gmock.h>

namespace hetseq {
namespace {

using Units = std::vector<std::int64_t>;

struct Noise {
    double sigma = 0.05;   // of the lognormal factor on each rank's each update
    double spikes = 0.02;  // chance of an update that takes `spike` times as long
    double spike = 5;
};

// Ranks that compute as their costs say, with noise, at speeds that change.
class Simulation {
public:
    Simulation(std::vector<StepCost> costs, std::int64_t units, unsigned seed, Noise noise = {})
        : truth_{std::move(costs)}, tracker_{truth_}, random_{seed}, noise_{noise} {
        allocation_ = allocate(truth_, units);
    }

    void set_speed(std::size_t rank, double speed) { truth_[rank].scale = 1 / speed; }

    void run(int updates) {
        for (int i = 0; i < updates; ++i)
            step();
    }

    // Time of the present allocation over the best one's, both at the present true speeds.
    double excess() const {
        return makespan_ms(truth_, allocation_) / makespan_ms(truth_, allocate(truth_, units()));
    }

    // Runs `updates` and returns after how many of them the allocation was good for good; `updates`
    // + 1 if it is not at the end.
    int updates_to_settle(int updates) {
        int settled = 0;
        for (int i = 1; i <= updates; ++i) {
            if (excess() > 1.05)
                settled = i;
            step();
        }
        return excess() > 1.05 ? updates + 1 : settled;
    }

    int changes() const { return changes_; }
    const Units& allocation() const { return allocation_; }

private:
    std::int64_t units() const {
        return std::accumulate(allocation_.begin(), allocation_.end(), std::int64_t{0});
    }

    void step() {
        std::lognormal_distribution<double> factor(0, noise_.sigma);
        std::bernoulli_distribution spike(noise_.spikes);
        std::vector<double> ms;
        for (std::size_t r = 0; r < truth_.size(); ++r)
            ms.push_back(truth_[r].time_ms(allocation_[r]) * factor(random_) *
                         (spike(random_) ? noise_.spike : 1));
        tracker_.observe(ms, allocation_);
        if (auto better = tracker_.propose(allocation_)) {
            allocation_ = std::move(*better);
            ++changes_;
        }
    }

    std::vector<StepCost> truth_;
    SpeedTracker tracker_;
    std::mt19937 random_;
    Noise noise_;
    Units allocation_;
    int changes_ = 0;
};

// Makes as many ranks as unit times, each with a start and micro-batches of 8.
std::vector<StepCost> cluster(const std::vector<double>& unit_ms) {
    std::vector<StepCost> costs;
    for (const double ms : unit_ms)
        costs.push_back({.start_ms = 2, .micro_batch_ms = ms, .unit_ms = ms, .micro_batch = 8});
    return costs;
}

const std::vector<std::vector<double>> clusters{
    {1, 1}, {1, 2, 4}, {1, 1, 1, 1}, {1, 1, 1, 1, 2, 2, 4, 4}};

// Throttles rank 0 to 0.3 and releases it, at each phase of the decisions.
TEST(SpeedTrackerTest, SettlesWithin30UpdatesAnd2ChangesOfAThrottlingAndARelease) {
    for (const std::int64_t units : {256, 2048})
        for (const std::vector<double>& unit_ms : clusters)
            for (unsigned phase = 0; phase < 20; ++phase) {
                Simulation simulation(cluster(unit_ms), units, phase);
                simulation.run(40 + static_cast<int>(phase));
                for (const double speed : {0.3, 1.0}) {
                    const int changes = simulation.changes();
                    simulation.set_speed(0, speed);

                    EXPECT_LE(simulation.updates_to_settle(80), 30)
                        << unit_ms.size() << " ranks, " << units << " units, phase " << phase;
                    EXPECT_LE(simulation.changes() - changes, 2)
                        << unit_ms.size() << " ranks, " << units << " units, phase " << phase;
                }
            }
}

TEST(SpeedTrackerTest, TablesAreFollowedAsWell) {
    std::vector<StepCost> costs = cluster({1, 1, 2});
    for (StepCost& cost : costs)
        cost.table = StepTable({{0, 5}, {32, 5 + 48 * cost.unit_ms}, {96, 5 + 96 * cost.unit_ms}});
    Simulation simulation(costs, 256, 1);
    simulation.run(40);

    simulation.set_speed(0, 0.3);

    EXPECT_LE(simulation.updates_to_settle(80), 30);
    EXPECT_LE(simulation.changes(), 2);
}

TEST(SpeedTrackerTest, ASmallLossIsFollowedToo) {
    Simulation simulation(cluster({1, 1, 1, 1}), 1024, 5);
    simulation.run(40);

    simulation.set_speed(2, 0.75);
    simulation.run(60);

    EXPECT_LE(simulation.excess(), 1.05);
    EXPECT_GE(simulation.changes(), 1);
    EXPECT_LE(simulation.changes(), 2);
}

TEST(SpeedTrackerTest, ALossOf20TimesIsFollowedInOneStep) {
    Simulation simulation(cluster({1, 1}), 256, 5, {.sigma = 0, .spikes = 0});
    simulation.run(40);

    simulation.set_speed(1, 0.05);

    EXPECT_LE(simulation.updates_to_settle(40), 10);
    EXPECT_EQ(simulation.changes(), 1);
}

TEST(SpeedTrackerTest, NoiseAloneChangesNothing) {
    for (const std::int64_t ranks : {2, 8, 32})
        for (unsigned seed = 0; seed < 3; ++seed) {
            Simulation simulation(
                cluster(std::vector<double>(std::size_t(ranks), 1)), 64 * ranks, seed);

            simulation.run(2000);

            EXPECT_EQ(simulation.changes(), 0) << ranks << " ranks, seed " << seed;
        }
}

TEST(SpeedTrackerTest, NoiseAloneChangesNothingAmongUnlikeRanks) {
    for (const std::vector<double>& unit_ms : clusters) {
        Simulation simulation(cluster(unit_ms), 512, 9);

        simulation.run(2000);

        EXPECT_EQ(simulation.changes(), 0) << unit_ms.size() << " ranks";
    }
}

TEST(SpeedTrackerTest, AShortStallChangesNothing) {
    Simulation simulation(cluster({1, 1, 1}), 300, 3);
    simulation.run(47);

    simulation.set_speed(0, 0.1);
    simulation.run(5);
    simulation.set_speed(0, 1);
    simulation.run(40);

    EXPECT_EQ(simulation.changes(), 0);
}

TEST(SpeedTrackerTest, ARankThatLostItsWorkIsTriedAgain) {
    Simulation simulation(cluster({1, 1}), 256, 3);
    simulation.run(40);
    simulation.set_speed(1, 0.002);
    simulation.run(30);
    EXPECT_EQ(simulation.allocation()[1], 0);

    simulation.set_speed(1, 1);
    simulation.run(100);
    EXPECT_EQ(simulation.allocation()[1], 0);
    simulation.run(400);

    EXPECT_LE(simulation.excess(), 1.05);
}

TEST(SpeedTrackerTest, ARankThatStaysSlowIsTriedLessAndLess) {
    Simulation simulation(cluster({1, 1}), 256, 3);
    simulation.set_speed(1, 0.002);
    int with_work[2] = {0, 0};

    for (int& updates : with_work)
        for (int i = 0; i < 2000; ++i) {
            simulation.run(1);
            updates += simulation.allocation()[1] > 0 ? 1 : 0;
        }

    EXPECT_GE(with_work[0], 20);
    EXPECT_LE(with_work[0], 60);
    EXPECT_LE(with_work[1], 20);
}

TEST(SpeedTrackerTest, KeepsTheScaleOfARankWithoutWorkForAWhile) {
    SpeedTracker tracker(cluster({1, 1}), {.retry_after = 20});
    for (int i = 0; i < 10; ++i)
        tracker.observe(std::vector<double>{11, 33}, Units{8, 8});

    for (int i = 0; i < 20; ++i)
        tracker.observe(std::vector<double>{11, 0}, Units{8, 0});
    EXPECT_NEAR(tracker.costs()[1].scale, 3, 1e-12);
    for (int i = 0; i < 50; ++i)
        tracker.observe(std::vector<double>{11, 0}, Units{8, 0});

    // Half of what it differed from 1 is gone.
    EXPECT_NEAR(tracker.costs()[1].scale, 2, 1e-9);
}

TEST(SpeedTrackerTest, ASuddenChangeTellsAfterTwelveUpdates) {
    SpeedTracker tracker(cluster({1, 1}));
    const Units current{8, 8};

    for (int i = 1; i <= 30; ++i) {
        tracker.observe(std::vector<double>{11, 55}, current);
        EXPECT_EQ(tracker.propose(current).has_value(), i == 12) << i;
    }
}

TEST(SpeedTrackerTest, ASuddenChangeThatDoesNotLastIsBelievedLessTheNextTime) {
    SpeedTracker tracker(cluster({1, 1}));
    Units current{64, 64};
    std::vector<int> updates;  // that each change takes to be answered

    for (int change = 0; change < 4; ++change)
        for (int i = 1; i <= 100; ++i) {
            const double scale = change % 2 == 0 ? 4 : 1;
            tracker.observe(std::vector<double>{cluster({1})[0].time_ms(current[0]),
                                                scale * cluster({1})[0].time_ms(current[1])},
                            current);
            if (const auto next = tracker.propose(current)) {
                current = *next;
                if (std::ssize(updates) == change)
                    updates.push_back(i);
            }
        }

    ASSERT_EQ(updates.size(), 4U);
    EXPECT_LE(updates[0], 12);
    EXPECT_LE(updates[1], 12);
    EXPECT_GE(updates[2], 15);
    EXPECT_GE(updates[3], 30);
}

// 100 ms an update beside the computing on the second rank, none on the first: 3 : 1 is best.
// Times as calibrated, the rest of an update among them, are no news.
TEST(SpeedTrackerTest, WhatElseAnUpdateTakesMayBeCalibrated) {
    std::vector<StepCost> costs = declared_costs(std::vector<std::int64_t>{4, 1});
    for (StepCost& cost : costs)
        cost.unit_ms *= 10;
    costs[1].update_ms = 30;
    const std::vector<std::int64_t> units = allocate(costs, 100);
    SpeedTracker tracker(costs);
    const std::vector<double> rest{0, 30};

    for (int update = 0; update < 300; ++update) {
        tracker.observe(std::vector<double>{costs[0].unit_ms * static_cast<double>(units[0]),
                                            costs[1].unit_ms * static_cast<double>(units[1])},
                        units,
                        rest);
        EXPECT_EQ(tracker.propose(units), std::nullopt) << update;
    }
    EXPECT_DOUBLE_EQ(tracker.costs()[1].scale, 1);
}

TEST(SpeedTrackerTest, WhatElseAnUpdateTakesCounts) {
    const std::vector<StepCost> costs(2, {.unit_ms = 1, .micro_batch = 100});
    SpeedTracker tracker(costs);
    const Units current{100, 100};
    std::optional<Units> next;

    for (int i = 1; i <= 100 && !next; ++i) {
        tracker.observe(std::vector<double>{100, 100}, current, std::vector<double>{0, 100});
        next = tracker.propose(current);
    }

    ASSERT_TRUE(next);
    EXPECT_THAT(*next, testing::ElementsAre(150, 50));
    EXPECT_EQ(tracker.costs()[1].update_ms, 0);
}

TEST(SpeedTrackerTest, LikeRanksAreTakenToBeEqual) {
    // 15 %, for 7 seconds.
    for (const bool are_alike : {true, false}) {
        SpeedTracker tracker(cluster({1, 1}),
                             {.kinds = are_alike ? std::vector{0, 0} : std::vector{0, 1}});
        const Units current{512, 512};
        bool is_cut = false;

        for (int i = 1; i <= 12; ++i) {
            tracker.observe(std::vector<double>{562, 650}, current);
            is_cut = is_cut || tracker.propose(current);
        }

        EXPECT_EQ(is_cut, !are_alike);
        EXPECT_EQ(tracker.costs()[0].scale == tracker.costs()[1].scale, are_alike);
    }
}

TEST(SpeedTrackerTest, LikeRanksThatStayUnlikeAreTold) {
    SpeedTracker tracker(cluster({1, 1}), {.kinds = {0, 0}});
    const Units current{512, 512};
    std::optional<Units> next;

    for (int i = 1; i <= 60 && !next; ++i) {
        tracker.observe(std::vector<double>{578, 867}, current);
        next = tracker.propose(current);
    }

    ASSERT_TRUE(next);
    EXPECT_NEAR((*next)[0], 614, 10);  // 3 : 2
}

TEST(SpeedTrackerTest, AYoungCalibrationIsCorrectedForLess) {
    // 4.8 % to gain.
    Simulation wrong(cluster({1, 1}), 1024, 5, {.sigma = 0.01, .spikes = 0});
    wrong.set_speed(1, 0.9);
    wrong.run(20);
    EXPECT_EQ(wrong.changes(), 1);
    EXPECT_LE(wrong.excess(), 1.02);

    Simulation slowed(cluster({1, 1}), 1024, 5, {.sigma = 0.01, .spikes = 0});
    slowed.run(30);
    slowed.set_speed(1, 0.9);
    slowed.run(60);
    EXPECT_EQ(slowed.changes(), 0);
}

TEST(SpeedTrackerTest, TimesThatAreNoneDoNotCount) {
    SpeedTracker tracker(cluster({1, 1}));

    for (int i = 0; i < 10; ++i)
        tracker.observe(std::vector<double>{0, std::numeric_limits<double>::infinity()},
                        Units{8, 8});

    EXPECT_EQ(tracker.costs()[0].scale, 1);
    EXPECT_EQ(tracker.costs()[1].scale, 1);
    EXPECT_FALSE(tracker.propose(Units{8, 8}));
}

// In a run that is continued as well.
// Batches end every 25 updates of 200 ms; corrections are due up to then.
TEST(SpeedTrackerTest, NearlyAllUpdatesAreQuiet) {
    SpeedTracker tracker(std::vector<StepCost>(4), {.kinds = {0, 0, 1, 1}});
    const Units current(4, 200);
    int loud = 0;
    for (int update = 1; update <= 1000; ++update) {
        tracker.observe(std::vector<double>(4, 200), current);
        if (!tracker.is_quiet(current)) {
            ++loud;
            EXPECT_EQ(update % 25, 0) << update;
        }
        EXPECT_EQ(tracker.propose(current), std::nullopt);
    }
    EXPECT_EQ(loud, 40);
}

// Three ranks of a kind lose their work in one update.
TEST(SpeedTrackerTest, RanksThatLoseTheirWorkKeepTheScaleTheyHad) {
    SpeedTracker tracker(std::vector<StepCost>(6), {.kinds = {0, 0, 0, 0, 1, 2}});
    const Units current(6, 100);
    for (int update = 0; update < 10; ++update)
        tracker.observe(std::vector<double>{150, 150, 150, 150, 130, 90}, current);
    const std::vector<StepCost> before = tracker.costs();
    const Units last{0, 0, 60, 0, 0, 40};
    EXPECT_TRUE(tracker.observes_slowly(last));
    EXPECT_FALSE(tracker.observes_slowly(current));

    tracker.observe(std::vector<double>{0, 0, 90, 0, 0, 36}, last);

    EXPECT_FALSE(tracker.observes_slowly(last));
    for (std::size_t r = 0; r < 6; ++r)
        EXPECT_DOUBLE_EQ(tracker.costs()[r].scale, before[r].scale) << r;
    EXPECT_DOUBLE_EQ(before[0].scale, 1.5);
    EXPECT_DOUBLE_EQ(before[4].scale, 1.3);
}

TEST(SpeedTrackerTest, AnIdleRanksEarlierScaleFadesToo) {
    std::vector<StepCost> costs = cluster({1, 1});
    costs[1].scale = 3;
    SpeedTracker tracker(costs, {.retry_after = 20});

    for (int i = 0; i < 70; ++i)
        tracker.observe(std::vector<double>{11, 0}, Units{8, 0});

    EXPECT_NEAR(tracker.costs()[1].scale, 2, 1e-9);
}

TEST(SpeedTrackerTest, EarlierScalesStayUntilTimesAreKnown) {
    std::vector<StepCost> costs = cluster({1});
    costs[0].scale = 2;
    SpeedTracker tracker(costs);

    EXPECT_EQ(tracker.costs()[0].scale, 2);
    for (int i = 0; i < 5; ++i)
        tracker.observe(std::vector<double>{3 * costs[0].time_ms(8)}, Units{8});

    EXPECT_DOUBLE_EQ(tracker.costs()[0].scale, 6);
}

}  // namespace
}  // namespace hetseq
