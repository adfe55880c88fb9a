#include <ATen/ops/_fused_adam_ops.h>
#include <ATen/ops/_fused_adamw_ops.h>
#include <ATen/ops/zeros.h>

#include "hetseq/util/error.hpp"
#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/optim/optimizer.hpp"

#include "gated_optimizer.hpp"
#include "parameter_groups.hpp"

namespace hetseq {

namespace {

enum class Decay { in_gradient, decoupled };

class Adam final : public detail::GatedOptimizer {
public:
    Adam(FlatParameters& parameters, const OptimizerOptions& options, Decay decay)
        : options_{options},
          decay_{decay},
          exp_avg_{parameters.state_zeros()},
          exp_avg_sq_{parameters.state_zeros()},
          device_step_{at::zeros({}, parameters.values().options().dtype(at::kFloat))} {
        for (const auto& param_group : detail::parameter_groups(parameters, options.weight_decay))
            groups_.push_back(group(parameters, param_group));
    }

    void step(FlatParameters& parameters, double lr) override {
        device_step_.fill_(static_cast<double>(count_step()));
        for (Group& group : groups_)
            update(parameters, group, lr * group.learning_rate_factor);
    }

    std::map<std::string, at::Tensor> state() const override {
        return {{"exp_avg", exp_avg_}, {"exp_avg_sq", exp_avg_sq_}, {"step", steps()}};
    }

private:
    struct Group {
        double weight_decay = 0;
        double learning_rate_factor = 1;
        std::vector<at::Tensor> values;
        detail::GroupGradients gradients;
        std::vector<at::Tensor> exp_avgs, exp_avg_sqs, steps;
    };

    Group group(const FlatParameters& parameters, const detail::ParameterGroup& param_group) const {
        Group group{param_group.weight_decay,
                    param_group.learning_rate_factor,
                    param_group.of(parameters.values()),
                    detail::GroupGradients{param_group.stretches},
                    param_group.of_state(exp_avg_),
                    param_group.of_state(exp_avg_sq_),
                    {}};
        group.steps.assign(group.values.size(), device_step_);
        return group;
    }

    void update(const FlatParameters& parameters, Group& group, double lr) const {
        const auto fused = decay_ == Decay::decoupled ? &at::_ops::_fused_adamw_::call
                                                      : &at::_ops::_fused_adam_::call;
        fused(group.values,
              group.gradients.of(parameters),
              group.exp_avgs,
              group.exp_avg_sqs,
              /*max_exp_avg_sqs=*/{},
              group.steps,
              lr,
              options_.beta1,
              options_.beta2,
              group.weight_decay,
              options_.eps,
              /*amsgrad=*/false,
              /*maximize=*/false,
              /*grad_scale=*/{},
              /*found_inf=*/found_inf());
    }

    OptimizerOptions options_;
    Decay decay_;
    at::Tensor exp_avg_, exp_avg_sq_;
    at::Tensor device_step_;  // what the fused kernels read
    std::vector<Group> groups_;
};

std::unique_ptr<Optimizer> make(FlatParameters& parameters,
                                const OptimizerOptions& options,
                                Decay decay) {
    HETSEQ_ASSERT(options.weight_decay >= 0 && options.eps >= 0);
    HETSEQ_ASSERT(options.beta1 >= 0 && options.beta1 < 1);
    HETSEQ_ASSERT(options.beta2 >= 0 && options.beta2 < 1);
    return std::make_unique<Adam>(parameters, options, decay);
}

}  // namespace

std::unique_ptr<Optimizer> make_adam(FlatParameters& parameters, const OptimizerOptions& options) {
    return make(parameters, options, Decay::in_gradient);
}

std::unique_ptr<Optimizer> make_adamw(FlatParameters& parameters, const OptimizerOptions& options) {
    return make(parameters, options, Decay::decoupled);
}

}  // namespace hetseq
