#include "hetseq/optim/averaged_optimizer.hpp"

#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include "hetseq/optim/flat_parameters.hpp"

namespace hetseq {

namespace {

class AveragedOptimizer final : public Optimizer {
public:
    AveragedOptimizer(std::unique_ptr<Optimizer> optimizer,
                      FlatParameters& parameters,
                      double decay)
        : optimizer_{std::move(optimizer)},
          weight_{1 - decay},
          average_{parameters.state_zeros()},
          gated_weight_{at::empty({}, average_.options())} {
        begin(parameters);
    }

    void begin(const FlatParameters& parameters) override {
        const at::NoGradGuard no_grad;
        for (const FlatParameters::Held& held : parameters.held())
            part(held).copy_(parameters.values().narrow(0, held.offset, held.numel));
        optimizer_->begin(parameters);
    }

    void step(FlatParameters& parameters, double lr) override {
        optimizer_->step(parameters, lr);
        const at::NoGradGuard no_grad;
        if (closed_.defined())
            gated_weight_.copy_(closed_).neg_().add_(1).mul_(weight_);
        for (const FlatParameters::Held& held : parameters.held()) {
            const at::Tensor values = parameters.values().narrow(0, held.offset, held.numel);
            if (closed_.defined())
                part(held).lerp_(values, gated_weight_);
            else
                part(held).lerp_(values, weight_);
        }
    }

    std::int64_t state_tensors() const override { return optimizer_->state_tensors() + 1; }
    double rate(double scheduled) const override { return optimizer_->rate(scheduled); }
    bool use_gate(const at::Tensor& closed) override {
        const bool is_gated = optimizer_->use_gate(closed);
        closed_ = is_gated ? closed : at::Tensor{};
        return is_gated;
    }
    void take_back() override { optimizer_->take_back(); }
    bool follows_shards() const override { return optimizer_->follows_shards(); }
    void use_sum(std::function<void(const at::Tensor&)> sum) override {
        optimizer_->use_sum(std::move(sum));
    }
    void restored() override { optimizer_->restored(); }
    at::Tensor average() const override { return average_; }

    std::map<std::string, at::Tensor> state() const override {
        std::map<std::string, at::Tensor> state = optimizer_->state();
        state.emplace(average_name, average_);
        return state;
    }

private:
    at::Tensor part(const FlatParameters::Held& held) const {
        return average_.narrow(0, held.state_offset, held.numel);
    }

    std::unique_ptr<Optimizer> optimizer_;
    double weight_;  // of the new values
    at::Tensor average_;
    at::Tensor gated_weight_;  // the same, or 0 where the gate is closed
    at::Tensor closed_;        // undefined: no gate
};

}  // namespace

std::unique_ptr<Optimizer> make_averaged(std::unique_ptr<Optimizer> optimizer,
                                         FlatParameters& parameters,
                                         double decay) {
    return std::make_unique<AveragedOptimizer>(std::move(optimizer), parameters, decay);
}

}  // namespace hetseq
