#include "hetseq/optim/gradient_norm.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>

#include "hetseq/util/error.hpp"

#include "block_squares.hpp"
#include "kernels/gradient_norm.hpp"

namespace hetseq {

namespace {

/// Elements [offset, offset + numel).
struct Stretch {
    std::int64_t offset = 0;
    std::int64_t numel = 0;
};

/// The parameters that are counted here, with their padding, and neighbours as one.
std::vector<Stretch> counted(const FlatParameters& parameters) {
    const auto& all = parameters.parameters();
    std::vector<Stretch> stretches;
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (!parameters.counts(all[i]))
            continue;
        const std::int64_t end =
            i + 1 < all.size() ? all[i + 1].offset : parameters.values().numel();
        if (stretches.empty() || stretches.back().offset + stretches.back().numel < all[i].offset)
            stretches.push_back({all[i].offset, 0});
        stretches.back().numel = end - stretches.back().offset;
    }
    return stretches;
}

std::size_t first_from(const std::vector<FlatParameters::Block>& blocks, std::int64_t offset) {
    const auto found = std::lower_bound(
        blocks.begin(), blocks.end(), offset, [](const auto& block, std::int64_t begin) {
            return block.offset < begin;
        });
    return static_cast<std::size_t>(found - blocks.begin());
}

}  // namespace

GradientNorm::GradientNorm(const FlatParameters& parameters)
    : blocks_{parameters.blocks()},
      block_numbers_{parameters.block_numbers()},
      all_blocks_{parameters.all_blocks()},
      runs_{runs_of(parameters)},
      norm_{at::zeros({}, parameters.gradients().options().dtype(at::kDouble))} {
    if (parameters.gradients().is_cpu())
        block_squares_.resize(blocks_.size());
    else
        reserve_sums(parameters.gradients().numel());
}

std::vector<GradientNorm::Run> GradientNorm::runs_of(const FlatParameters& parameters) {
    std::vector<Run> runs;
    for (const FlatParameters::Held& held : parameters.held())
        for (const Stretch& stretch : counted(parameters)) {
            const std::int64_t begin = std::max(held.offset, stretch.offset);
            const std::int64_t end =
                std::min(held.offset + held.numel, stretch.offset + stretch.numel);
            if (begin < end)
                runs.push_back({begin,
                                end - begin,
                                first_from(parameters.blocks(), begin),
                                first_from(parameters.blocks(), end)});
        }
    return runs;
}

void GradientNorm::reserve_sums(std::int64_t numel) {
    const std::int64_t whole = detail::gradient_norm_sums(numel);
    std::int64_t of_runs = 0;
    for (const Run& run : runs_)
        of_runs += detail::gradient_norm_sums(run.numel);
    sums_ = at::empty({std::max(whole, of_runs)}, norm_.options());
    std::int64_t begin = 0;
    for (const Run& run : runs_) {
        const std::int64_t count = detail::gradient_norm_sums(run.numel);
        run_sums_.push_back(sums_.narrow(0, begin, count));
        begin += count;
    }
    all_run_sums_ = sums_.narrow(0, 0, of_runs);
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
    HETSEQ_ASSERT(std::cmp_equal(squares.numel(), all_blocks_) && squares.is_contiguous());
    squares.zero_();
    if (runs_.empty())
        return;
    if (gradients.is_cpu()) {
        auto* const out = squares.mutable_data_ptr<double>();
        for (const Run& run : runs_) {
            detail::block_squares(gradients,
                                  std::span{blocks_}.subspan(run.begin, run.end - run.begin),
                                  block_squares_.data() + run.begin);
            for (std::size_t b = run.begin; b < run.end; ++b)
                out[block_numbers_[b]] = block_squares_[b];
        }
        return;
    }
    for (std::size_t i = 0; i < runs_.size(); ++i)
        detail::sums_of_squares_cuda(gradients.narrow(0, runs_[i].offset, runs_[i].numel),
                                     run_sums_[i]);
    at::Tensor first =
        squares.select(0, static_cast<std::int64_t>(block_numbers_[runs_.front().begin]));
    at::sum_out(first, all_run_sums_, 0);
}

const at::Tensor& GradientNorm::from_squares(const at::Tensor& squares) {
    if (squares.is_cpu()) {
        *norm_.mutable_data_ptr<double>() =
            detail::norm_of({squares.const_data_ptr<double>(), all_blocks_});
        return norm_;
    }
    at::sum_out(norm_, squares, 0);
    norm_.sqrt_();
    return norm_;
}

}  // namespace hetseq
