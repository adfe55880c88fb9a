#include "hetseq/train/checkpoint/checkpoint_pace.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "hetseq/balance/median.hpp"

namespace hetseq {

namespace {

constexpr double first_s = 10;  // after the start of a run that has saved nothing yet
constexpr double least_s = 2, most_s = 600;
constexpr double after_failure_s = 60;  // at least
constexpr double most_lost = 0.01;      // of training's time, for failures that nobody has seen
constexpr double most_written = 0.2;    // of the disk's time
constexpr std::size_t steps_kept = 64, costs_kept = 5;

}  // namespace

void CheckpointPace::began(double waited_s) {
    under_way_ = UnderWay{.waited_s = waited_s};
}

void CheckpointPace::updated(double step_s) {
    if (under_way_) {
        under_way_->updates_s += step_s;
        ++under_way_->updates;
        return;
    }
    if (steps_s_.size() < steps_kept)
        steps_s_.push_back(step_s);
    else
        steps_s_[next_] = step_s;
    next_ = (next_ + 1) % steps_kept;
}

void CheckpointPace::ended(double writing_s) {
    if (!under_way_)
        return;
    has_failed_ = false;
    const UnderWay saved = *std::exchange(under_way_, {});
    double slower_s = 0;
    if (!steps_s_.empty())
        slower_s = saved.updates_s - static_cast<double>(saved.updates) * median(steps_s_);
    if (costs_.size() == costs_kept)
        costs_.erase(costs_.begin());
    costs_.push_back({saved.waited_s + std::clamp(slower_s, 0.0, writing_s), writing_s});
}

void CheckpointPace::failed() {
    under_way_.reset();
    has_failed_ = true;
}

std::optional<CheckpointCost> CheckpointPace::cost() const {
    if (costs_.empty())
        return options_.known;
    std::vector<double> training_s, writing_s;
    for (const CheckpointCost& cost : costs_) {
        training_s.push_back(cost.training_s);
        writing_s.push_back(cost.writing_s);
    }
    return CheckpointCost{median(training_s), median(writing_s)};
}

double CheckpointPace::interval_s() const {
    constexpr double never = std::numeric_limits<double>::infinity();
    if (options_.every_s)
        return *options_.every_s > 0 ? *options_.every_s : never;
    if (under_way_)
        return never;
    const double least = has_failed_ ? after_failure_s : least_s;
    const std::optional<CheckpointCost> cost = this->cost();
    if (!cost)
        return options_.has_failed ? least : std::max(first_s, least);
    const double best_s = std::sqrt(2 * cost->training_s * options_.between_failures_s);
    const double cheap_s = options_.has_failed ? 0 : cost->training_s / most_lost;
    return std::max(std::min(most_s, std::max({least, cheap_s, best_s})),
                    cost->writing_s / most_written);
}

}  // namespace hetseq
