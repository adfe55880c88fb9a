#include "kernels/adadelta.hpp"

#include "hetseq/util/error.hpp"
#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/optim/optimizer.hpp"

#include "gated_optimizer.hpp"
#include "parameter_groups.hpp"

namespace hetseq {

namespace {

class Adadelta final : public detail::GatedOptimizer {
public:
    Adadelta(FlatParameters& parameters, const OptimizerOptions& options)
        : options_{options},
          square_avg_{parameters.state_zeros()},
          acc_delta_{parameters.state_zeros()} {
        for (const auto& param_group : detail::parameter_groups(parameters, options.weight_decay))
            for (const detail::Stretch& stretch : param_group.stretches)
                parts_.push_back({{stretch.of(parameters.values()),
                                   stretch.of(parameters.gradients()),
                                   stretch.of_state(square_avg_),
                                   stretch.of_state(acc_delta_)},
                                  stretch,
                                  param_group.weight_decay,
                                  param_group.learning_rate_factor});
    }

    void step(FlatParameters& parameters, double lr) override {
        count_step();
        const auto update =
            parameters.values().is_cuda() ? &detail::adadelta_cuda : &detail::adadelta_cpu;
        for (Part& part : parts_) {
            part.tensors.gradients = part.stretch.of(parameters.gradients());
            update(part.tensors,
                   closed(),
                   {lr * part.learning_rate_factor,
                    options_.rho,
                    options_.adadelta_eps,
                    part.weight_decay});
        }
    }

    std::map<std::string, at::Tensor> state() const override {
        return {{"square_avg", square_avg_}, {"acc_delta", acc_delta_}, {"step", steps()}};
    }

private:
    struct Part {
        detail::AdadeltaTensors tensors;
        detail::Stretch stretch;
        double weight_decay = 0;
        double learning_rate_factor = 1;
    };

    OptimizerOptions options_;
    at::Tensor square_avg_, acc_delta_;  // (held)
    std::vector<Part> parts_;
};

}  // namespace

std::unique_ptr<Optimizer> make_adadelta(FlatParameters& parameters,
                                         const OptimizerOptions& options) {
    HETSEQ_ASSERT(options.weight_decay >= 0 && options.adadelta_eps > 0);
    HETSEQ_ASSERT(options.rho >= 0 && options.rho <= 1);
    return std::make_unique<Adadelta>(parameters, options);
}

}  // namespace hetseq
