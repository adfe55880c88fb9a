#include "hetseq/optim/flat_parameters.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include <ATen/ops/zeros.h>

#include "hetseq/util/error.hpp"

namespace hetseq {

namespace {

using LearningRateFactor = std::function<double(const std::string&)>;

double factor_of(const std::string& name, const LearningRateFactor& learning_rate_factor) {
    const double factor = learning_rate_factor ? learning_rate_factor(name) : 1;
    if (!std::isfinite(factor) || factor < 0)
        throw BadConfig(
            "the learning rate factor of parameter '" + name + "' is " + std::to_string(factor),
            "it multiplies the learning rate",
            "give a finite number >= 0");
    return factor;
}

/// The distinct trainable parameters, whether held or not, last registered first.
std::vector<FlatParameters::Parameter> trainable_parameters(
    const TensorRegistry& model,
    const std::function<bool(const std::string&)>& decays,
    const LearningRateFactor& learning_rate_factor) {
    std::vector<FlatParameters::Parameter> parameters;
    std::set<const at::TensorImpl*> seen;
    for (const auto& [name, tensor] : model.named_parameters())
        if (tensor.requires_grad() && seen.insert(tensor.unsafeGetTensorImpl()).second)
            parameters.push_back({name,
                                  tensor,
                                  0,
                                  tensor.numel(),
                                  decays(name),
                                  factor_of(name, learning_rate_factor)});
    std::reverse(parameters.begin(), parameters.end());
    return parameters;
}

/// Sets the offsets; returns the length of all, padding included.
std::int64_t lay_out(std::vector<FlatParameters::Parameter>& parameters) {
    std::int64_t offset = 0;
    for (auto& parameter : parameters) {
        parameter.offset = offset;
        offset += FlatParameters::padded(parameter.numel, parameter.tensor.element_size());
    }
    return offset;
}

std::vector<FlatParameters::Segment> join_neighbours(
    const std::vector<FlatParameters::Parameter>& parameters, std::int64_t total) {
    std::vector<FlatParameters::Segment> segments;
    for (const auto& parameter : parameters)
        if (segments.empty() || segments.back().decays != parameter.decays ||
            segments.back().learning_rate_factor != parameter.learning_rate_factor)
            segments.push_back(
                {parameter.offset, 0, parameter.decays, parameter.learning_rate_factor});
    for (std::size_t i = 0; i < segments.size(); ++i) {
        const std::int64_t end = i + 1 < segments.size() ? segments[i + 1].offset : total;
        segments[i].numel = end - segments[i].offset;
    }
    return segments;
}

std::vector<FlatParameters::Block> cut_into_blocks(
    const std::vector<FlatParameters::Parameter>& parameters) {
    constexpr std::int64_t most = FlatParameters::most_in_block;
    std::vector<FlatParameters::Block> blocks;
    for (const auto& parameter : parameters)
        for (std::int64_t begin = 0; begin < parameter.numel; begin += most)
            blocks.push_back({parameter.offset + begin, std::min(most, parameter.numel - begin)});
    return blocks;
}

std::size_t blocks_in(std::int64_t numel) {
    constexpr std::int64_t most = FlatParameters::most_in_block;
    return static_cast<std::size_t>((numel + most - 1) / most);
}

void check_alike(const std::vector<FlatParameters::Parameter>& parameters) {
    if (parameters.empty())
        throw BadConfig("the model has no parameter to train",
                        "none of its parameters requires a gradient",
                        "leave at least one of them unfrozen");
    for (const auto& parameter : parameters) {
        HETSEQ_ASSERT(parameter.tensor.is_floating_point());
        HETSEQ_ASSERT(parameter.tensor.scalar_type() == parameters.front().tensor.scalar_type());
        HETSEQ_ASSERT(parameter.tensor.device() == parameters.front().tensor.device());
    }
}

}  // namespace

FlatParameters::FlatParameters(const TensorRegistry& model,
                               const std::function<bool(const std::string&)>& decays,
                               const LearningRateFactor& learning_rate_factor)
    : is_part_{model.is_part()},
      all_parameters_{trainable_parameters(model, decays, learning_rate_factor)} {
    check_alike(all_parameters_);
    for (const Parameter& parameter : all_parameters_) {
        const std::size_t blocks = blocks_in(parameter.numel);
        if (model.is_held(parameter.name)) {
            parameters_.push_back(parameter);
            for (std::size_t b = 0; b < blocks; ++b)
                block_numbers_.push_back(all_blocks_ + b);
        }
        all_blocks_ += blocks;
    }
    const std::int64_t total = lay_out(parameters_);
    auto held = parameters_.begin();
    for (Parameter& parameter : all_parameters_)
        parameter.offset = model.is_held(parameter.name) ? (held++)->offset : not_held;
    const at::TensorOptions options = all_parameters_.front().tensor.options().requires_grad(false);
    values_ = at::zeros({total}, options);
    segments_ = join_neighbours(parameters_, total);
    blocks_ = cut_into_blocks(parameters_);
    if (total > 0)
        held_ = {{0, total, 0}};
    for (auto& parameter : parameters_) {
        const auto view = [&](const at::Tensor& flat) {
            return flat.narrow(0, parameter.offset, parameter.numel).view(parameter.tensor.sizes());
        };
        at::Tensor value = view(values_);
        value.copy_(parameter.tensor.detach());
        parameter.tensor.set_data(value);
    }
    gradients_ = at::zeros({total}, options);  // when the parameters' own memory is free again
    use(gradient_set());
}

GradientSet FlatParameters::set_of(const at::Tensor& flat) const {
    GradientSet set{.flat = flat};
    for (const Parameter& parameter : parameters_)
        set.views.push_back(
            flat.narrow(0, parameter.offset, parameter.numel).view(parameter.tensor.sizes()));
    return set;
}

GradientSet FlatParameters::new_gradient_set() const {
    return set_of(at::zeros(gradients_.sizes(), gradients_.options()));
}

void FlatParameters::use(const GradientSet& set) {
    gradients_ = set.flat;
    for (std::size_t i = 0; i < parameters_.size(); ++i)
        parameters_[i].tensor.mutable_grad() = set.views[i];
}

std::int64_t FlatParameters::padded(std::int64_t numel, std::int64_t element_size) {
    constexpr std::int64_t alignment = 64;  // bytes
    const std::int64_t step = alignment / element_size;
    return (numel + step - 1) / step * step;
}

std::int64_t FlatParameters::all_numel() const noexcept {
    std::int64_t sum = 0;
    for (const Parameter& parameter : all_parameters_)
        sum += padded(parameter.numel, parameter.tensor.element_size());
    return sum;
}

void FlatParameters::count_elsewhere(const std::vector<std::string>& names) {
    counted_elsewhere_.insert(names.begin(), names.end());
}

void FlatParameters::zero_gradients() {
    gradients_.zero_();
}

void FlatParameters::shard_state(std::vector<OwnedRange> ranges, int rank) {
    held_.clear();
    std::int64_t end = 0;
    for (const OwnedRange& range : ranges) {
        HETSEQ_ASSERT(range.begin == end && range.length > 0);
        end += range.length;
        if (range.owner == rank)
            held_.push_back({range.begin, range.length, held_numel()});
    }
    HETSEQ_ASSERT(end == values_.numel());
    state_ranges_ = std::move(ranges);
}

std::int64_t FlatParameters::held_numel() const noexcept {
    return held_.empty() ? 0 : held_.back().state_offset + held_.back().numel;
}

at::Tensor FlatParameters::state_zeros() const {
    return at::zeros({held_numel()}, values_.options());
}

}  // namespace hetseq
