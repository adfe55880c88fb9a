#include "hetseq/state/loss_scale.hpp"

#include <algorithm>

namespace hetseq {

namespace {

constexpr double largest = 1 << 24;
constexpr std::int64_t updates_to_growth = 2000;

}  // namespace

void LossScale::begin() {
    at_begin_ = value();
    repeats_ = 0;
}

bool LossScale::overflowed() {
    if (!state_)
        return false;
    if (state_->value <= 1) {
        state_->value = at_begin_;
        return false;
    }
    const double divisor = repeats_ == 0 ? 2 : 16;
    ++repeats_;
    ++state_->overflows;
    state_->value = std::max(1.0, state_->value / divisor);
    state_->good_updates = 0;
    return true;
}

bool LossScale::overflowed_late(double scale) {
    if (!state_ || scale <= 1)
        return false;
    ++state_->overflows;
    state_->value = std::min(state_->value, scale / 2);
    state_->good_updates = 0;
    return true;
}

void LossScale::applied() {
    if (!state_ || ++state_->good_updates < updates_to_growth)
        return;
    state_->value = std::min(largest, 2 * state_->value);
    state_->good_updates = 0;
}

}  // namespace hetseq
