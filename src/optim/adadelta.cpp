#include "kernels/adadelta.hpp"

#include <ATen/ops/zeros_like.h>

#include "hetseq/util/error.hpp"

#include "gated_optimizer.hpp"

#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/optim/optimizer.hpp"

namespace hetseq {

namespace {

class Adadelta final : public detail::GatedOptimizer {
public:
    Adadelta(FlatParameters& parameters, const OptimizerOptions& options)
        : options_{options},
          square_avg_{at::zeros_like(parameters.values())},
          acc_delta_{at::zeros_like(parameters.values())} {
        for (const auto& segment : parameters.segments()) {
            const auto view = [&](const at::Tensor& flat) {
                return flat.narrow(0, segment.offset, segment.numel);
            };
            segments_.push_back({{view(parameters.values()),
                                  view(parameters.gradients()),
                                  view(square_avg_),
                                  view(acc_delta_)},
                                 segment.decays ? options.weight_decay : 0,
                                 segment.learning_rate_factor});
        }
    }

    void step(FlatParameters& parameters, double lr) override {
        count_step();
        const auto update =
            parameters.values().is_cuda() ? &detail::adadelta_cuda : &detail::adadelta_cpu;
        for (const Segment& segment : segments_)
            update(segment.tensors,
                   closed(),
                   {lr * segment.learning_rate_factor,
                    options_.rho,
                    options_.adadelta_eps,
                    segment.weight_decay});
    }

    std::map<std::string, at::Tensor> state() const override {
        return {{"square_avg", square_avg_}, {"acc_delta", acc_delta_}, {"step", steps()}};
    }

private:
    struct Segment {
        detail::AdadeltaTensors tensors;
        double weight_decay = 0;
        double learning_rate_factor = 1;
    };

    OptimizerOptions options_;
    at::Tensor square_avg_, acc_delta_;  // (n)
    std::vector<Segment> segments_;
};

}  // namespace

std::unique_ptr<Optimizer> make_adadelta(FlatParameters& parameters,
                                         const OptimizerOptions& options) {
    HETSEQ_ASSERT(options.weight_decay >= 0 && options.adadelta_eps > 0);
    HETSEQ_ASSERT(options.rho >= 0 && options.rho <= 1);
    return std::make_unique<Adadelta>(parameters, options);
}

}  // namespace hetseq
