#include "hetseq/balance/speed_tracker.hpp"

#include <algorithm>
#include <functional>
#include <iostream>
#include <limits>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include <gmock/gmock.h>

#include "hetseq/balance/allocate.hpp"

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
    const SpeedTracker& tracker() const { return tracker_; }

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

// As many ranks as unit times, each with a start and micro-batches of 8.
std::vector<StepCost> cluster(const std::vector<double>& unit_ms) {
    std::vector<StepCost> costs;
    for (const double ms : unit_ms)
        costs.push_back({.start_ms = 2, .micro_batch_ms = ms, .unit_ms = ms, .micro_batch = 8});
    return costs;
}

const std::vector<std::vector<double>> clusters{
    {1, 1}, {1, 2, 4}, {1, 1, 1, 1}, {1, 1, 1, 1, 2, 2, 4, 4}};

struct Outcome {
    int slow = 0;      // runs that took more than 30 updates to come within 5 %
    int restless = 0;  // runs with more than 2 changes for one change of speed
    int most_updates = 0;
    int runs = 0;
};

// Throttles rank 0 to 0.3 for 80 updates, at each phase of the decisions and for several seeds.
Outcome throttle(std::int64_t units) {
    Outcome outcome;
    for (const std::vector<double>& unit_ms : clusters)
        for (int phase = 0; phase < 10; ++phase)
            for (unsigned seed = 0; seed < 10; ++seed) {
                Simulation simulation(cluster(unit_ms), units, seed);
                simulation.run(40 + phase);
                for (const double speed : {0.3, 1.0}) {
                    const int before = simulation.changes();
                    simulation.set_speed(0, speed);
                    const int updates = simulation.updates_to_settle(80);
                    outcome.most_updates = std::max(outcome.most_updates, updates);
                    outcome.slow += updates > 30 ? 1 : 0;
                    outcome.restless += simulation.changes() - before > 2 ? 1 : 0;
                    ++outcome.runs;
                }
            }
    return outcome;
}

TEST(SpeedTrackerTest, SettlesAfterThrottlingAndRelease) {
    for (const std::int64_t units : {256, 2048}) {
        const Outcome outcome = throttle(units);

        std::cout << outcome.runs << " changes of speed, settled within " << outcome.most_updates
                  << " updates; slow " << outcome.slow << ", restless " << outcome.restless << "\n";
    }
}

TEST(SpeedTrackerTest, NoiseAloneChangesNothing) {
    int changes = 0;
    for (const std::size_t ranks : {2, 8, 32, 128})
        for (unsigned seed = 0; seed < 10; ++seed) {
            Simulation simulation(
                cluster(std::vector<double>(ranks, 1)), 64 * std::int64_t(ranks), seed);

            simulation.run(2000);

            changes += simulation.changes();
        }
    std::cout << changes << " changes\n";
}

}  // namespace
}  // namespace hetseq
