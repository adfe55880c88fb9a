#include <ATen/ops/_fused_sgd.h>

#include "hetseq/util/error.hpp"
#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/optim/optimizer.hpp"

#include "gated_optimizer.hpp"
#include "parameter_groups.hpp"

namespace hetseq {

namespace {

class Sgd final : public detail::GatedOptimizer {
public:
    Sgd(FlatParameters& parameters, const OptimizerOptions& options) : options_{options} {
        if (options.momentum > 0)
            momentum_ = parameters.state_zeros();
        for (const auto& param_group : detail::parameter_groups(parameters, options.weight_decay))
            groups_.push_back(group(parameters, param_group));
    }

    void step(FlatParameters& parameters, double lr) override {
        count_step();
        // A buffer of zeros makes the first step like any other: 0 * momentum + gradient.
        for (Group& group : groups_)
            at::_fused_sgd_(group.values,
                            group.gradients.of(parameters),
                            group.momenta,
                            group.weight_decay,
                            options_.momentum,
                            lr * group.learning_rate_factor,
                            /*dampening=*/0,
                            /*nesterov=*/false,
                            /*maximize=*/false,
                            /*is_first_step=*/false,
                            /*grad_scale=*/{},
                            /*found_inf=*/found_inf());
    }

    std::map<std::string, at::Tensor> state() const override {
        std::map<std::string, at::Tensor> state{{"step", steps()}};
        if (momentum_.defined())
            state["momentum"] = momentum_;
        return state;
    }

private:
    struct Group {
        double weight_decay = 0;
        double learning_rate_factor = 1;
        std::vector<at::Tensor> values;
        detail::GroupGradients gradients;
        std::vector<at::Tensor> momenta;
    };

    Group group(const FlatParameters& parameters, const detail::ParameterGroup& param_group) const {
        return {param_group.weight_decay,
                param_group.learning_rate_factor,
                param_group.of(parameters.values()),
                detail::GroupGradients{param_group.stretches},
                momentum_.defined() ? param_group.of_state(momentum_) : std::vector<at::Tensor>{}};
    }

    OptimizerOptions options_;
    at::Tensor momentum_;  // (held), undefined without momentum
    std::vector<Group> groups_;
};

}  // namespace

std::unique_ptr<Optimizer> make_sgd(FlatParameters& parameters, const OptimizerOptions& options) {
    HETSEQ_ASSERT(options.weight_decay >= 0);
    HETSEQ_ASSERT(options.momentum >= 0 && options.momentum < 1);
    return std::make_unique<Sgd>(parameters, options);
}

}  // namespace hetseq
