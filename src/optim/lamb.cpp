#include <algorithm>

#include <ATen/ops/_fused_adam_ops.h>
#include <ATen/ops/div.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include "hetseq/util/error.hpp"
#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/optim/optimizer.hpp"

#include "block_norm.hpp"
#include "gated_optimizer.hpp"
#include "parameter_groups.hpp"

namespace hetseq {

namespace {

class Lamb final : public detail::GatedOptimizer {
public:
    Lamb(FlatParameters& parameters, const OptimizerOptions& options)
        : options_{options},
          exp_avg_{at::zeros_like(parameters.values())},
          exp_avg_sq_{at::zeros_like(parameters.values())},
          device_step_{at::zeros({}, parameters.values().options().dtype(at::kFloat))} {
        if (options.weight_decay > 0)
            directions_ = at::zeros_like(parameters.values());
        for (const auto& param_group : detail::parameter_groups(parameters, options.weight_decay))
            groups_.push_back(group(parameters, param_group));
        add_layers(parameters);
    }

    void step(FlatParameters&, double lr) override {
        device_step_.fill_(static_cast<double>(count_step()));
        if (directions_.defined())
            directions_.zero_();
        // A step of -1 from 0 ends at Adam's direction. Without a trust ratio it is Adam's step.
        for (Group& group : groups_)
            adam_step(group, group.is_adaptive ? -1 : lr * group.learning_rate_factor);
        for (const Layer& layer : layers_)
            set_norms(layer);
        set_ratios();
        for (const Layer& layer : layers_)
            layer.value.addcmul_(layer.direction, layer.ratio, -lr * layer.learning_rate_factor);
    }

    std::map<std::string, at::Tensor> state() const override {
        return {{"exp_avg", exp_avg_}, {"exp_avg_sq", exp_avg_sq_}, {"step", steps()}};
    }

private:
    struct Group {
        bool is_adaptive = false;  // has trust ratios
        double learning_rate_factor = 1;
        std::vector<at::Tensor> targets;  // directions where the group is adaptive, or values
        std::vector<at::Tensor> gradients, exp_avgs, exp_avg_sqs, steps;
    };
    /// A parameter with a trust ratio.
    struct Layer {
        at::Tensor value, direction;                   // (numel)
        at::Tensor value_norm, direction_norm, ratio;  // scalars on the parameters' device
        double learning_rate_factor = 1;
    };

    Group group(const FlatParameters& parameters, const detail::ParameterGroup& param_group) const {
        const bool adaptive = param_group.weight_decay > 0;
        Group group{adaptive,
                    param_group.learning_rate_factor,
                    param_group.of(adaptive ? directions_ : parameters.values()),
                    param_group.of(parameters.gradients()),
                    param_group.of(exp_avg_),
                    param_group.of(exp_avg_sq_),
                    {}};
        group.steps.assign(group.targets.size(), device_step_);
        return group;
    }

    void add_layers(const FlatParameters& parameters) {
        for (const auto& parameter : parameters.parameters()) {
            const auto view = [&](const at::Tensor& flat) {
                return flat.narrow(0, parameter.offset, parameter.numel);
            };
            if (!parameter.decays || !directions_.defined())
                continue;
            Layer layer;
            layer.value = view(parameters.values());
            layer.direction = view(directions_);
            layer.learning_rate_factor = parameter.learning_rate_factor;
            layers_.push_back(layer);
            block_sums_.resize(std::max(block_sums_.size(), detail::norm_blocks(parameter.numel)));
        }
        const at::TensorOptions options = parameters.values().options();
        const auto count = static_cast<std::int64_t>(layers_.size());
        value_norms_ = at::zeros({count}, options);
        direction_norms_ = at::zeros({count}, options);
        ratios_ = at::zeros({count}, options);
        has_no_ratio_ = at::empty({count}, options.dtype(at::kBool));
        zero_ = at::zeros({}, options);
        for (std::int64_t i = 0; i < count; ++i) {
            Layer& layer = layers_[static_cast<std::size_t>(i)];
            layer.value_norm = value_norms_.select(0, i);
            layer.direction_norm = direction_norms_.select(0, i);
            layer.ratio = ratios_.select(0, i);
        }
    }

    void adam_step(Group& group, double lr) const {
        at::_ops::_fused_adam_::call(group.targets,
                                     group.gradients,
                                     group.exp_avgs,
                                     group.exp_avg_sqs,
                                     /*max_exp_avg_sqs=*/{},
                                     group.steps,
                                     lr,
                                     options_.beta1,
                                     options_.beta2,
                                     /*weight_decay=*/0,
                                     options_.eps,
                                     /*amsgrad=*/false,
                                     /*maximize=*/false,
                                     /*grad_scale=*/{},
                                     /*found_inf=*/found_inf());
    }

    void set_norms(const Layer& layer) {
        layer.direction.add_(layer.value, options_.weight_decay);
        set_norm(layer.value, layer.value_norm);
        set_norm(layer.direction, layer.direction_norm);
    }

    // LibTorch's norm on the CPU depends on the number of threads, which ranks may have unlike.
    void set_norm(const at::Tensor& x, at::Tensor norm) {
        if (x.is_cpu())
            norm.fill_(detail::block_norm(x, block_sums_));
        else
            at::linalg_vector_norm_out(norm, x);
    }

    // Stays on the device: |w| / |direction|, and 1 where either is 0; all 0 behind a closed gate,
    // where the directions are finite because Adam's part of them is 0.
    void set_ratios() {
        at::div_out(ratios_, value_norms_, direction_norms_);
        ratios_.nan_to_num_(0, /*posinf=*/0);
        at::eq_out(has_no_ratio_, ratios_, zero_);
        ratios_.masked_fill_(has_no_ratio_, 1);
        if (closed().defined())
            ratios_.addcmul_(ratios_, closed(), -1);
    }

    OptimizerOptions options_;
    at::Tensor exp_avg_, exp_avg_sq_;  // (n)
    at::Tensor directions_;            // (n), used where a parameter has a trust ratio
    at::Tensor device_step_;           // what the fused kernels read
    at::Tensor value_norms_, direction_norms_, ratios_, has_no_ratio_;  // (layers)
    at::Tensor zero_;
    std::vector<Group> groups_;
    std::vector<Layer> layers_;
    std::vector<double> block_sums_;
};

}  // namespace

std::unique_ptr<Optimizer> make_lamb(FlatParameters& parameters, const OptimizerOptions& options) {
    HETSEQ_ASSERT(options.weight_decay >= 0 && options.eps >= 0);
    HETSEQ_ASSERT(options.beta1 >= 0 && options.beta1 < 1);
    HETSEQ_ASSERT(options.beta2 >= 0 && options.beta2 < 1);
    return std::make_unique<Lamb>(parameters, options);
}

}  // namespace hetseq
