#pragma once

#include <cstdint>
#include <span>

#include "hetseq/train/update_status.hpp"

namespace hetseq {

struct ForwardContext;
class HostComm;
class LoadedShare;
class Pass;
class Recorder;
struct TrainingProgress;
class UpdateStep;

/// Tells of updates and parameters that are not as they should be, and ends a run that no update
/// can help any more. Members are collective where they don't say otherwise.
class SkippedUpdates {
public:
    /// All must outlive it. A run ends after `most` skipped updates in a row (--max-skips).
    SkippedUpdates(
        const HostComm& world, Pass& pass, UpdateStep& step, Recorder& recorder, std::int64_t most)
        : world_{world}, pass_{pass}, step_{step}, recorder_{recorder}, most_{most} {}

    /// `context.update` is skipped, since its loss or gradient is not finite. The ranks where that
    /// is so name the samples of `share`; null: it is gone. Throws BadData after the last skip that
    /// is allowed, and AgreedError where a parameter is not finite.
    void skip(Verdict verdict,
              const LoadedShare* share,
              const ForwardContext& context,
              TrainingProgress& progress) const;
    /// An update is skipped, since a gradient in fp16 was too large. Not collective.
    void skip_overflow(std::int64_t update, double new_scale, TrainingProgress& progress) const;

    /// Once, of the first update whose batch has no weight in any loss. Not collective.
    void tell_of_no_weight(std::int64_t update, std::span<const double> weights);
    /// At the end, of a model that holds values that are not finite.
    void tell_of_parameters(std::int64_t update) const;

private:
    void require_finite_parameters() const;
    void name_samples(Verdict verdict,
                      const LoadedShare& share,
                      const ForwardContext& context) const;

    const HostComm& world_;
    Pass& pass_;
    UpdateStep& step_;
    Recorder& recorder_;
    std::int64_t most_;
    bool told_of_no_weight_ = false;
};

}  // namespace hetseq
