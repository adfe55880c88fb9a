#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/ops/_fused_adam_ops.h>
#include <ATen/ops/div.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/zeros.h>

#include "hetseq/util/error.hpp"
#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/optim/optimizer.hpp"

#include "block_squares.hpp"
#include "gated_optimizer.hpp"
#include "parameter_groups.hpp"

namespace hetseq {

namespace {

/// A parameter with a trust ratio.
struct LambLayer {
    /// What is held of it.
    struct Piece {
        at::Tensor value, direction;    // (n)
        std::int64_t offset = 0;        // among the parameters
        std::int64_t state_offset = 0;  // in the directions
    };
    std::vector<Piece> pieces;
    std::int64_t offset = 0;  // of the whole parameter
    std::int64_t numel = 0;
    double learning_rate_factor = 1;
};

/// The norms of layers' values and directions, and their ratios.
class LayerNorms {
public:
    LayerNorms() = default;
    LayerNorms(const FlatParameters& parameters, const std::vector<LambLayer>& layers) {
        const at::TensorOptions options = parameters.values().options();
        const auto count = std::ssize(layers);
        value_norms_ = at::zeros({count}, options);
        direction_norms_ = at::zeros({count}, options);
        ratios_ = at::zeros({count}, options);
        has_no_ratio_ = at::empty({count}, options.dtype(at::kBool));
        zero_ = at::zeros({}, options);
        if (options.device().is_cpu() || !parameters.state_ranges().empty())
            cut_into_blocks(parameters, layers);
    }

    /// `sum`: over ranks, where each holds some; null: this one holds all.
    void set(const at::Tensor& values,
             const at::Tensor& directions,
             const std::vector<LambLayer>& layers,
             const std::function<void(const at::Tensor&)>& sum) {
        if (layers.empty())
            return;
        if (values.is_cpu())
            return set_by_blocks(values, directions, sum);
        if (sum)
            return set_from_pieces(sum);
        for (std::size_t i = 0; i < layers.size(); ++i) {
            at::Tensor value_norm = value_norms_[at(i)], direction_norm = direction_norms_[at(i)];
            at::linalg_vector_norm_out(value_norm, layers[i].pieces[0].value);
            at::linalg_vector_norm_out(direction_norm, layers[i].pieces[0].direction);
        }
    }

    // Stays on the device: |w| / |direction|, and 1 where either is 0; all 0 behind a closed gate,
    // where the directions are finite because Adam's part of them is 0.
    void set_ratios(const at::Tensor& closed) {
        at::div_out(ratios_, value_norms_, direction_norms_);
        ratios_.nan_to_num_(0, /*posinf=*/0);
        at::eq_out(has_no_ratio_, ratios_, zero_);
        ratios_.masked_fill_(has_no_ratio_, 1);
        if (closed.defined())
            ratios_.addcmul_(ratios_, closed, -1);
    }

    at::Tensor ratio(std::size_t layer) const { return ratios_[at(layer)]; }

private:
    /// Blocks [begin, begin + count) of all layers', which lie there in a tensor.
    struct Run {
        std::int64_t begin = 0;
        const LambLayer::Piece* piece = nullptr;
        std::vector<FlatParameters::Block> of_values, of_directions;
    };

    static std::int64_t at(std::size_t index) { return static_cast<std::int64_t>(index); }

    // LibTorch's norm on the CPU depends on the number of threads, which ranks may have unlike. A
    // run is what is held of one layer.
    void cut_into_blocks(const FlatParameters& parameters, const std::vector<LambLayer>& layers) {
        std::int64_t count = 0;
        for (const LambLayer& layer : layers) {
            ends_.push_back(count);
            for (const FlatParameters::Block& block : parameters.blocks()) {
                if (block.offset < layer.offset || block.offset >= layer.offset + layer.numel)
                    continue;
                for (const LambLayer::Piece& piece : layer.pieces)
                    if (block.offset >= piece.offset &&
                        block.offset < piece.offset + piece.value.numel())
                        add_block(count, block, piece);
                ++count;
            }
            ends_.back() = count;
        }
        squares_ = at::zeros({2, count}, parameters.values().options().dtype(at::kDouble));
    }

    void add_block(std::int64_t index,
                   const FlatParameters::Block& block,
                   const LambLayer::Piece& piece) {
        if (runs_.empty() || runs_.back().piece != &piece)
            runs_.push_back({index, &piece, {}, {}});
        runs_.back().of_values.push_back(block);
        runs_.back().of_directions.push_back(
            {block.offset - piece.offset + piece.state_offset, block.numel});
    }

    void set_by_blocks(const at::Tensor& values,
                       const at::Tensor& directions,
                       const std::function<void(const at::Tensor&)>& sum) {
        squares_.zero_();
        double* const of_values = squares_.mutable_data_ptr<double>();
        double* const of_directions = of_values + squares_.size(1);
        for (const Run& run : runs_) {
            detail::block_squares(values, run.of_values, of_values + run.begin);
            detail::block_squares(directions, run.of_directions, of_directions + run.begin);
        }
        if (sum)
            sum(squares_);
        std::int64_t begin = 0;
        for (std::size_t i = 0; i < ends_.size(); ++i) {
            const auto count = static_cast<std::size_t>(ends_[i] - begin);
            value_norms_[at(i)].fill_(detail::norm_of({of_values + begin, count}));
            direction_norms_[at(i)].fill_(detail::norm_of({of_directions + begin, count}));
            begin = ends_[i];
        }
    }

    // A piece's squares as one number, at its first block: the layout of ranks on CPUs.
    void set_from_pieces(const std::function<void(const at::Tensor&)>& sum) {
        squares_.zero_();
        for (const Run& run : runs_) {
            squares_[0][run.begin].copy_(square_of(run.piece->value));
            squares_[1][run.begin].copy_(square_of(run.piece->direction));
        }
        sum(squares_);
        std::int64_t begin = 0;
        for (std::size_t i = 0; i < ends_.size(); ++i) {
            const at::Tensor norms = squares_.slice(1, begin, ends_[i]).sum(1).sqrt_();
            value_norms_[at(i)].copy_(norms[0]);
            direction_norms_[at(i)].copy_(norms[1]);
            begin = ends_[i];
        }
    }

    static at::Tensor square_of(const at::Tensor& x) {
        return at::linalg_vector_norm(x, 2, std::nullopt, false, at::kDouble).square_();
    }

    at::Tensor value_norms_, direction_norms_, ratios_, has_no_ratio_;  // (layers)
    at::Tensor zero_;
    at::Tensor squares_;              // (2, blocks) of all layers, fp64
    std::vector<Run> runs_;           // of what is held
    std::vector<std::int64_t> ends_;  // by layer, of its blocks
};

class Lamb final : public detail::GatedOptimizer {
public:
    Lamb(FlatParameters& parameters, const OptimizerOptions& options)
        : options_{options},
          exp_avg_{parameters.state_zeros()},
          exp_avg_sq_{parameters.state_zeros()},
          device_step_{at::zeros({}, parameters.values().options().dtype(at::kFloat))} {
        if (options.weight_decay > 0)
            directions_ = parameters.state_zeros();
        for (const auto& param_group : detail::parameter_groups(parameters, options.weight_decay))
            groups_.push_back(group(parameters, param_group));
        add_layers(parameters);
        norms_ = LayerNorms{parameters, layers_};
    }

    void step(FlatParameters& parameters, double lr) override {
        device_step_.fill_(static_cast<double>(count_step()));
        if (directions_.defined())
            directions_.zero_();
        // A step of -1 from 0 ends at Adam's direction. Without a trust ratio it is Adam's step.
        for (Group& group : groups_)
            adam_step(parameters, group, group.is_adaptive ? -1 : lr * group.learning_rate_factor);
        for (const Layer& layer : layers_)
            for (const Piece& piece : layer.pieces)
                piece.direction.add_(piece.value, options_.weight_decay);
        norms_.set(parameters.values(), directions_, layers_, sum_);
        norms_.set_ratios(closed());
        for (std::size_t i = 0; i < layers_.size(); ++i)
            for (const Piece& piece : layers_[i].pieces)
                piece.value.addcmul_(
                    piece.direction, norms_.ratio(i), -lr * layers_[i].learning_rate_factor);
    }

    void use_sum(std::function<void(const at::Tensor&)> sum) override { sum_ = std::move(sum); }

    std::int64_t state_tensors() const override {
        return Optimizer::state_tensors() + (directions_.defined() ? 1 : 0);
    }

    std::map<std::string, at::Tensor> state() const override {
        return {{"exp_avg", exp_avg_}, {"exp_avg_sq", exp_avg_sq_}, {"step", steps()}};
    }

private:
    using Layer = LambLayer;
    using Piece = LambLayer::Piece;
    struct Group {
        bool is_adaptive = false;  // has trust ratios
        double learning_rate_factor = 1;
        std::vector<at::Tensor> targets;  // directions where the group is adaptive, or values
        detail::GroupGradients gradients;
        std::vector<at::Tensor> exp_avgs, exp_avg_sqs, steps;
    };

    Group group(const FlatParameters& parameters, const detail::ParameterGroup& param_group) const {
        const bool adaptive = param_group.weight_decay > 0;
        Group group{
            adaptive,
            param_group.learning_rate_factor,
            adaptive ? param_group.of_state(directions_) : param_group.of(parameters.values()),
            detail::GroupGradients{param_group.stretches},
            param_group.of_state(exp_avg_),
            param_group.of_state(exp_avg_sq_),
            {}};
        group.steps.assign(group.targets.size(), device_step_);
        return group;
    }

    void add_layers(const FlatParameters& parameters) {
        for (const auto& parameter : parameters.parameters()) {
            if (!parameter.decays || !directions_.defined())
                continue;
            Layer layer{{}, parameter.offset, parameter.numel, parameter.learning_rate_factor};
            for (const detail::Stretch& stretch :
                 detail::held_stretches(parameters, parameter.offset, parameter.numel))
                layer.pieces.push_back({stretch.of(parameters.values()),
                                        stretch.of_state(directions_),
                                        stretch.offset,
                                        stretch.state_offset});
            layers_.push_back(std::move(layer));
        }
    }

    void adam_step(const FlatParameters& parameters, Group& group, double lr) const {
        at::_ops::_fused_adam_::call(group.targets,
                                     group.gradients.of(parameters),
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

    OptimizerOptions options_;
    at::Tensor exp_avg_, exp_avg_sq_;  // (held)
    at::Tensor directions_;            // (held), used where a parameter has a trust ratio
    at::Tensor device_step_;           // what the fused kernels read
    std::vector<Group> groups_;
    std::vector<Layer> layers_;
    LayerNorms norms_;
    std::function<void(const at::Tensor&)> sum_;  // null: all is held
};

}  // namespace

std::unique_ptr<Optimizer> make_lamb(FlatParameters& parameters, const OptimizerOptions& options) {
    HETSEQ_ASSERT(options.weight_decay >= 0 && options.eps >= 0);
    HETSEQ_ASSERT(options.beta1 >= 0 && options.beta1 < 1);
    HETSEQ_ASSERT(options.beta2 >= 0 && options.beta2 < 1);
    return std::make_unique<Lamb>(parameters, options);
}

}  // namespace hetseq
