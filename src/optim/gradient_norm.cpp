#include "hetseq/optim/gradient_norm.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include <ATen/ATen.h>

#include "hetseq/util/error.hpp"

#include "block_squares.hpp"
#include "kernels/gradient_norm.hpp"

namespace hetseq {

GradientNorm::GradientNorm(const FlatParameters& parameters)
    : blocks_{parameters.blocks()},
      held_{parameters.held()},
      norm_{at::zeros({}, parameters.gradients().options().dtype(at::kDouble))} {
    const auto first_from = [&](std::int64_t offset) {
        const auto found = std::lower_bound(
            blocks_.begin(), blocks_.end(), offset, [](const auto& block, std::int64_t begin) {
                return block.offset < begin;
            });
        return static_cast<std::size_t>(found - blocks_.begin());
    };
    std::int64_t sums = 0;
    const bool is_on_cpu = parameters.gradients().is_cpu();
    for (const FlatParameters::Held& held : held_) {
        held_blocks_.push_back({first_from(held.offset), first_from(held.offset + held.numel)});
        sums += is_on_cpu ? 0 : detail::gradient_norm_sums(held.numel);
    }
    if (is_on_cpu) {
        block_squares_.resize(blocks_.size());
        return;
    }
    const std::int64_t whole = detail::gradient_norm_sums(parameters.gradients().numel());
    sums_ = at::empty({std::max(whole, sums)}, norm_.options());
    std::int64_t begin = 0;
    for (const FlatParameters::Held& held : held_) {
        const std::int64_t count = detail::gradient_norm_sums(held.numel);
        held_sums_.push_back(sums_.narrow(0, begin, count));
        begin += count;
    }
    all_held_sums_ = sums_.narrow(0, 0, sums);
    sums_ = sums_.narrow(0, 0, whole);
}

const at::Tensor& GradientNorm::of(const at::Tensor& gradients) {
    if (gradients.is_cpu()) {
        detail::block_squares(gradients, blocks_, block_squares_.data());
        *norm_.mutable_data_ptr<double>() = detail::norm_of(block_squares_);
        return norm_;
    }
    detail::sums_of_squares_cuda(gradients, sums_);
    at::sum_out(norm_, sums_, 0);
    norm_.sqrt_();
    return norm_;
}

void GradientNorm::held_squares(const at::Tensor& gradients, at::Tensor squares) {
    HETSEQ_ASSERT(std::cmp_equal(squares.numel(), blocks_.size()) && squares.is_contiguous());
    squares.zero_();
    if (held_.empty())
        return;
    if (gradients.is_cpu()) {
        for (const HeldBlocks& run : held_blocks_)
            detail::block_squares(gradients,
                                  std::span{blocks_}.subspan(run.begin, run.end - run.begin),
                                  squares.mutable_data_ptr<double>() + run.begin);
        return;
    }
    for (std::size_t i = 0; i < held_.size(); ++i)
        detail::sums_of_squares_cuda(gradients.narrow(0, held_[i].offset, held_[i].numel),
                                     held_sums_[i]);
    at::Tensor first = squares.select(0, static_cast<std::int64_t>(held_blocks_[0].begin));
    at::sum_out(first, all_held_sums_, 0);
}

const at::Tensor& GradientNorm::from_squares(const at::Tensor& squares) {
    if (squares.is_cpu()) {
        *norm_.mutable_data_ptr<double>() =
            detail::norm_of({squares.const_data_ptr<double>(), blocks_.size()});
        return norm_;
    }
    at::sum_out(norm_, squares, 0);
    norm_.sqrt_();
    return norm_;
}

}  // namespace hetseq
