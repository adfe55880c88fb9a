#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "hetseq/comm/communicator.hpp"
#include "hetseq/data/loaded_share.hpp"
#include "hetseq/state/training_state.hpp"
#include "hetseq/model/model.hpp"
#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/optim/gradient_norm.hpp"
#include "hetseq/train/update_status.hpp"
#include "hetseq/train/waves/update_figures.hpp"

namespace hetseq {

class GradientReducer;
class UpdateStep;

/// A set of gradients of new memory, with what `model` sums beside them.
GradientSet make_gradient_set(const FlatParameters& parameters, const Model& model);

/// An update that is computed and not yet applied.
struct Wave {
    GradientSet gradients;  // this rank's part, and all ranks' sums once they are there
    at::Tensor sent;        // what is summed in their place; undefined: they themselves
    UpdateStatus status;
    std::vector<std::unique_ptr<Work>> works = {};  // of the gradients
    std::unique_ptr<Work> status_work = {};         // null where parameters are cut over ranks
    bool is_summed = false;
    Verdict verdict = Verdict::apply;       // once it is summed
    UpdateFigures figures = {};             // likewise losses and norm
    std::optional<LoadedShare> share = {};  // none where a checkpoint held the sums
};

/// Computes updates one after the other, up to `staleness` ahead of the one that is applied, and
/// sums their gradients meanwhile (docs/virtual-workers.md, "Staleness"). Each has gradients of its
/// own; `staleness` + 1 sets take turns.
class WaveRing {
public:
    /// What is there at the start.
    struct Start {
        std::int64_t staleness = 0;
        std::vector<GradientSet> sets = {};  // beside the parameters' own; missing ones are made
        std::vector<GradientSet> sums = {};  // of the first updates, as a checkpoint had them;
                                             // more than there are sets go when applied
        std::vector<PendingUpdate> pending = {};  // these updates
        std::size_t ranks = 1;
    };

    /// All must outlive the ring.
    WaveRing(Model& model,
             FlatParameters& parameters,
             GradientReducer& reducer,
             UpdateStep& step,
             Start start);

    std::size_t size() const noexcept { return waves_.size(); }  // computed, and not applied
    std::size_t staleness() const noexcept { return staleness_; }

    /// Collective. Forward and backward of the next update, whose sums are then under way.
    /// `figures`: what is known of it before.
    void compute(LoadedShare share,
                 std::span<const double> weights,
                 const ForwardContext& context,
                 UpdateFigures figures);
    /// Collective. The first of those that are computed, when its gradients are summed: they are
    /// the parameters' now, `told.scale` times those of L, and the model's update sums are its.
    const Wave& take();
    /// That one was applied or left out.
    void release();

    /// Collective. Waits until all that is under way is summed.
    void sum_all();
    /// After that, in order: at most `staleness` of them.
    std::vector<GradientSet> sums() const;
    std::vector<PendingUpdate> pending() const;

private:
    std::unique_ptr<Wave> make_wave(GradientSet set, at::Tensor sent) const;
    Wave& begin_next();
    void start(Wave& wave);
    void sum(Wave& wave);
    void wait_for_sums(Wave& wave);
    void read(Wave& wave);
    std::size_t saved() const;

    Model& model_;
    FlatParameters& parameters_;
    GradientReducer& reducer_;
    UpdateStep& step_;
    GradientNorm norm_;
    std::size_t staleness_;
    std::vector<std::unique_ptr<Wave>> free_;
    std::deque<std::unique_ptr<Wave>> waves_;  // in the order of updates
};

}  // namespace hetseq
