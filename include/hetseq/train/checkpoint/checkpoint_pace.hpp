#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace hetseq {

/// What checkpoints cost a run, as far as it is known.
struct CheckpointCost {
    double training_s = 0;  // that training lost to one: it waited, or was slower beside it
    double writing_s = 0;   // from its start to its end
};

struct CheckpointPaceOptions {
    std::optional<double> every_s = {};  // as a user says, 0: never; none: as often as is good
    double between_failures_s = 86400;   // the mean
    bool has_failed = false;             // an earlier start of the run
    std::optional<CheckpointCost> known = {};  // of earlier starts of the run
};

/// Says how often to save. The interval is that of the least loss, sqrt(2 C M) for a cost C and a
/// mean time M between failures (Young 1974; Daly 2006, eq. 9), but at least 2 s and at most 10
/// min. While M is a guess, since no start has failed, it is at least 100 C, so that checkpoints
/// take one hundredth at the most. Whatever these say, it is five times as long as a checkpoint
/// takes to be written: the disk has other users.
class CheckpointPace {
public:
    explicit CheckpointPace(const CheckpointPaceOptions& options) : options_{options} {}

    /// A checkpoint began; training waited so long for that [s].
    void began(double waited_s);
    /// An update took so long, with what it waited for a checkpoint's copy [s].
    void updated(double step_s);
    /// The checkpoint is complete, so long after its start [s].
    void ended(double writing_s);
    /// It was given up. The next one has to wait for a minute: a disk that is full, or away for a
    /// moment, is not to end the run at once by failures in a row.
    void failed();
    bool is_saving() const noexcept { return under_way_.has_value(); }
    /// Whether nobody has said how often.
    bool is_automatic() const noexcept { return !options_.every_s; }

    /// From one checkpoint to the next [s]; infinite: none is to begin by the clock, or not while
    /// one is under way.
    double interval_s() const;
    /// The median of the last ones; none: none was complete.
    std::optional<CheckpointCost> cost() const;

private:
    struct UnderWay {
        double waited_s = 0;
        double updates_s = 0;
        std::size_t updates = 0;
    };

    CheckpointPaceOptions options_;
    std::vector<double> steps_s_;  // the last ones beside which none was written, a ring
    std::size_t next_ = 0;
    std::optional<UnderWay> under_way_;
    std::vector<CheckpointCost> costs_;  // the last ones
    bool has_failed_ = false;            // the last one
};

}  // namespace hetseq
