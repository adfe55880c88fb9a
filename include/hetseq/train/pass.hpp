#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>

#include "hetseq/data/order/micro_batch_cap.hpp"
#include "hetseq/model/model.hpp"

namespace hetseq {

class GradientReducer;
class LoadedShare;
class UpdateStatus;

/// How a rank computes its share of a batch: alone, or as a stage of a pipeline, whose ranks all
/// have the same share.
class Pass {
public:
    explicit Pass(Model& model) : model_{model} {}
    virtual ~Pass() = default;
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;

    Model& model() const noexcept { return model_; }

    /// Micro-batches [begin, end) of a share, as an update computes them.
    struct Work {
        const LoadedShare& share;
        std::size_t begin = 0, end = 0;
        std::span<const double> weights;  // the global W_j, by loss term
        const ForwardContext& context;
        double loss_scale = 1;
        bool reduces = true;  // buckets start as the last backward makes their gradients
    };
    /// Forward and backward: adds gradients to the flat ones, and losses to `status`. Of a
    /// pipeline's ranks the last stage has losses. Throws what computing throws; a rank of a
    /// pipeline does so when the others are done, which go on without what it lacks.
    virtual void forward_backward(const Work& work,
                                  GradientReducer& reducer,
                                  UpdateStatus& status) = 0;

    /// The result of a micro-batch, with it, on the device.
    using Take = std::function<void(const MicroBatch& micro_batch, const ForwardResult& result)>;
    /// Forward of all micro-batches, without graphs. `take` gets the results in their order, of a
    /// pipeline's ranks on the last stage alone. Throws as above.
    virtual void forward(const LoadedShare& share,
                         const ForwardContext& context,
                         const Take& take) = 0;

    /// Whether other ranks compute the same share with this one.
    virtual bool is_shared() const noexcept { return false; }
    /// Collective where it is shared: the cap that all of them take where memory does not hold
    /// more. Throws on all ranks what `own` throws on any.
    virtual MicroBatchCap agreed_cap(const std::function<MicroBatchCap()>& own) { return own(); }
    /// Collective where it is shared: whether `own` holds on any of the ranks. All are told.
    virtual bool is_so_on_any(bool own) { return own; }
    /// Collective where it is shared: whether `own` holds on any of the ranks. Of a pipeline's
    /// ranks the last stage is told, and the others get false.
    virtual bool holds_on_any(bool own) { return own; }
    /// How long the last `forward_backward` waited for other ranks [ms].
    virtual double waited_ms() const noexcept { return 0; }
    /// What it sent them [MiB].
    virtual double sent_mb() const noexcept { return 0; }

    /// The micro-batch that was computed last.
    std::size_t at_work() const noexcept { return at_work_; }

protected:
    void enter(std::size_t micro_batch) noexcept { at_work_ = micro_batch; }

private:
    Model& model_;
    std::size_t at_work_ = 0;
};

/// That of a rank which has the whole model, which outlives the pass.
std::unique_ptr<Pass> make_whole_pass(Model& model);

}  // namespace hetseq
