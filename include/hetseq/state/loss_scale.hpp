#pragma once

#include <cstdint>
#include <optional>

namespace hetseq {

/// The factor of all ranks' losses which keeps gradients that are computed in fp16 above its
/// smallest numbers (Micikevicius et al. 2018, "Mixed precision training", section 3.2). A power of
/// two, the same on all ranks, also on those that need none: there it changes no bit. An update
/// whose gradients overflowed is computed again with a smaller one.
class LossScale {
public:
    struct State {
        double value = 65536;
        std::int64_t good_updates = 0;  // since it changed
        std::int64_t overflows = 0;     // so far, of the run
    };

    /// 1 for ever.
    LossScale() = default;
    explicit LossScale(const State& state) : state_{state} {}

    double value() const noexcept { return state_ ? state_->value : 1; }
    /// None where it is 1 for ever.
    const std::optional<State>& state() const noexcept { return state_; }

    /// An update begins.
    void begin();
    /// Its gradients are not finite, though its losses are. Returns true if it is to be computed
    /// again, with the scale as it is now: half of it first, then sixteenths, down to 1. Where it
    /// was 1 the scale becomes that of the update's begin, since it is not to blame.
    bool overflowed();
    /// The same of an update that cannot be computed again, whose gradients were computed with
    /// `scale`. Returns true if the scale may be to blame: it is halved then, once for all updates
    /// that were computed with it.
    bool overflowed_late(double scale);
    /// The update is applied.
    void applied();

private:
    std::optional<State> state_;
    double at_begin_ = 1;
    std::int64_t repeats_ = 0;  // of this update
};

}  // namespace hetseq
