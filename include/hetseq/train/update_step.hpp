#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "hetseq/util/rank_time.hpp"
#include "hetseq/data/order/micro_batch_cap.hpp"
#include "hetseq/state/loss_scale.hpp"
#include "hetseq/model/model.hpp"
#include "hetseq/optim/gradient_norm.hpp"
#include "hetseq/train/compute_timer.hpp"
#include "hetseq/train/update_status.hpp"

namespace hetseq {

class FlatParameters;
class GradientReducer;
class LoadedShare;
class Pass;
class StepGate;

/// Forward, backward and reduction of one update: the flat gradients of all ranks then hold the
/// gradient of L = sum_j S_j / W_j over the whole global batch, however it was cut.
class UpdateStep {
public:
    /// All must outlive the step. `gate`: set on the device in each update; null: none.
    UpdateStep(Pass& pass,
               FlatParameters& parameters,
               GradientReducer& reducer,
               StepGate* gate = nullptr,
               const LossScale& loss_scale = {});

    /// Where this rank's memory runs out, the model's layers may be computed again in backward: if
    /// `costs_less` than halving the given number of micro-batches, or these cannot be halved.
    void recompute_at_need(std::function<bool(std::int64_t micro_batches)> costs_less) {
        recomputing_costs_less_ = std::move(costs_less);
    }

    /// Collective. `weights`: the global W_j, by loss term; a term with W_j = 0 drops out. Runs
    /// again when a rank ran out of memory, with that rank's micro-batch halved (`share` is cut
    /// again) or its layers recomputed, and when a gradient overflowed, with a smaller loss scale.
    /// Afterwards the flat gradients are `gradient_scale` times those of L. Throws DeviceError on a
    /// rank whose memory does not hold a single sample. `behind_gate`: called in each of these runs
    /// when the gate is set, before the host knows the verdict.
    Verdict run(
        LoadedShare& share,
        std::span<const double> weights,
        const ForwardContext& context,
        const std::function<void()>& behind_gate = [] {});

    /// Forward and backward alone, with nothing summed over ranks: the flat gradients and `status`
    /// then hold this rank's part. A rank that runs out of memory starts its share again in less of
    /// it, together with those that compute it with this one. `then`: called when the device is
    /// asked for all of it, before the host waits to know its time. Throws DeviceError as above.
    void run_alone(LoadedShare& share,
                   std::span<const double> weights,
                   const ForwardContext& context,
                   UpdateStatus& status,
                   const std::function<void()>& then);

    /// The ids of the samples in those micro-batches of `share` whose gradient is not finite (their
    /// loss may be). They are found by computing the micro-batches again one by one, without
    /// reduction. Leaves the gradients at zero. Collective where the pass is shared: of a
    /// pipeline's ranks the last stage names them.
    std::vector<std::int64_t> non_finite_gradient_samples(const LoadedShare& share,
                                                          const ForwardContext& context);

    /// S_j / W_j of the last update, by loss term.
    const std::vector<double>& losses() const noexcept { return losses_; }
    /// Of the last update: the norm of the summed gradients, without the loss scale.
    double gradient_norm() const noexcept { return gradient_norm_; }
    /// What the flat gradients of the last update were multiplied with.
    double gradient_scale() const noexcept { return gradient_scale_; }
    /// That of the next update.
    const LossScale& loss_scale() const noexcept { return loss_scale_; }
    LossScale& loss_scale() noexcept { return loss_scale_; }

    struct Timing {
        RankTimes times = {};    // compute, wait and reduce
        double pass_ms = 0;      // forward and backward, with waiting for other stages
        bool is_regular = true;  // nothing was computed twice for want of memory
    };
    const Timing& timing() const noexcept { return timing_; }
    /// 0: not measured.
    double ms(RankTime time) const { return timing_.times[time].value_or(0); }
    /// What memory holds of a micro-batch of this rank, after running out of it; none: it never
    /// did.
    const std::optional<MicroBatchCap>& reduced_cap() const noexcept { return reduced_cap_; }

private:
    void begin(LoadedShare& share);
    void add_pass_times();
    void compute(LoadedShare& share,
                 std::span<const double> weights,
                 const ForwardContext& context);
    enum class Buckets { start, wait };  // when backward has made their gradients
    void forward_backward(const LoadedShare& share,
                          std::span<const double> weights,
                          const ForwardContext& context,
                          UpdateStatus& status,
                          Buckets buckets);
    bool lacks_memory_alone(const LoadedShare& share,
                            std::span<const double> weights,
                            const ForwardContext& context,
                            UpdateStatus& status);
    void finish_reduction(const std::function<void()>& behind_gate);
    std::string reason_to_repeat(Verdict verdict);
    void make_room(LoadedShare& share);
    MicroBatchCap cap_with_room(const LoadedShare& share, const std::string& reason);
    bool recomputes_first(const LoadedShare& share) const;
    const MicroBatch& that_takes_memory(const LoadedShare& share) const;
    std::string other_cures() const;
    MicroBatchCap halved_micro_batch(const LoadedShare& share, const std::string& reason) const;

    Pass& pass_;
    Model& model_;
    FlatParameters& parameters_;
    GradientReducer& reducer_;
    StepGate* gate_;
    LossScale loss_scale_;
    UpdateStatus status_;
    GradientNorm norm_;
    ComputeTimer timer_;
    ComputeTimer
        wait_timer_;  // by the device as well: there backward returns before it has computed
    std::vector<double> losses_;
    double gradient_norm_ = 0;
    double gradient_scale_ = 1;
    std::string lacked_memory_;  // what this rank said when it ran out of memory; empty: it did not
    std::optional<MicroBatchCap> reduced_cap_;
    std::function<bool(std::int64_t)> recomputing_costs_less_;  // null: not at need
    Timing timing_;
};

/// The ids of the samples in those micro-batches of `share` whose loss is not finite, found by
/// forward passes without gradients or reduction.
std::vector<std::int64_t> non_finite_samples(Pass& pass,
                                             const LoadedShare& share,
                                             const ForwardContext& context);

}  // namespace hetseq
