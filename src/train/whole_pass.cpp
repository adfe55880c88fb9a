#include <cstdint>

#include <ATen/core/grad_mode.h>

#include "hetseq/util/process/profiler_range.hpp"
#include "hetseq/data/loaded_share.hpp"
#include "hetseq/model/autocast.hpp"
#include "hetseq/train/gradient_reducer.hpp"
#include "hetseq/train/pass.hpp"

#include "normalised_loss.hpp"

namespace hetseq {

namespace {

class WholePass final : public Pass {
public:
    using Pass::Pass;

    void forward_backward(const Work& work,
                          GradientReducer& reducer,
                          UpdateStatus& status) override {
        const KeptCasts casts{model().arithmetic()};
        for (std::size_t i = work.begin; i < work.end; ++i) {
            enter(i);
            const ProfilerRange range{"micro-batch", static_cast<std::int64_t>(i)};
            const MicroBatch micro_batch = work.share.on_device(work.share.micro_batches()[i]);
            const at::Tensor loss = normalised_loss(
                run_forward(model(), micro_batch, work.context), work.weights, status);
            if (work.reduces && i + 1 == work.end)
                reducer.arm();
            if (loss.defined() && loss.requires_grad())  // a task's micro-batch may have no loss
                reducer.add_gradients_of([&] { backward_scaled(loss, work.loss_scale); });
        }
    }

    void forward(const LoadedShare& share,
                 const ForwardContext& context,
                 const Take& take) override {
        const at::NoGradGuard no_grad;
        const KeptCasts casts{model().arithmetic()};
        for (const MicroBatch& loaded : share.micro_batches()) {
            const MicroBatch micro_batch = share.on_device(loaded);
            take(micro_batch, run_forward(model(), micro_batch, context));
        }
    }
};

}  // namespace

std::unique_ptr<Pass> make_whole_pass(Model& model) {
    return std::make_unique<WholePass>(model);
}

}  // namespace hetseq
