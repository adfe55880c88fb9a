#include "token_rows.hpp"

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/zeros.h>

#include "hetseq/util/error.hpp"

namespace hetseq::detail {

TokenRows::TokenRows(const MicroBatch& batch)
    : sequences_{batch.tensors.at("input_ids").size(0)},
      width_{batch.tensors.at("input_ids").size(1)} {
    const auto mask = batch.tensors.find("attention_mask");
    const bool is_said = !batch.row_lengths.empty();
    if (is_said || mask == batch.tensors.end()) {
        HETSEQ_ASSERT(!is_said || std::ssize(batch.row_lengths) == sequences_);
        begins_.push_back(0);
        for (std::int64_t i = 0; i < sequences_; ++i)
            begins_.push_back(begins_.back() +
                              (is_said ? batch.row_lengths[static_cast<std::size_t>(i)] : width_));
    }
    const bool has_padding = begins_.empty() || begins_.back() < sequences_ * width_;
    HETSEQ_ASSERT(!has_padding || mask != batch.tensors.end());
    if (has_padding)
        key_mask_ = mask->second.to(at::kBool);
    if (has_padding && is_said) {
        places_ = batch.tensors.at("token_places");
        HETSEQ_ASSERT(places_.numel() == begins_.back());
        positions_ = places_.remainder(width_);
        if (places_.is_cuda())
            row_of_ = at::full({sequences_ * width_}, -1, places_.options())
                          .index_copy(0, places_, at::arange(places_.numel(), places_.options()));
        if (batch.sample_ids.defined())
            row_samples_ = batch.sample_ids.index_select(0, places_.floor_divide(width_));
    }
}

at::Tensor TokenRows::packed(const at::Tensor& padded) const {
    const at::Tensor rows = padded.flatten(0, 1);
    return is_packed() ? rows.index_select(0, places_) : rows;
}

at::Tensor TokenRows::padded(const at::Tensor& rows) const {
    const at::Tensor all = is_packed()
                               ? at::zeros({sequences_ * width_, rows.size(1)}, rows.options())
                                     .index_copy(0, places_, rows)
                               : rows;
    return all.view({sequences_, width_, rows.size(1)});
}

at::Tensor TokenRows::rows_of(const at::Tensor& places) const {
    return is_packed() ? at::searchsorted(places_, places) : places;
}

Dropout TokenRows::of_rows(Dropout dropout) const {
    if (is_packed() && dropout.p > 0) {
        dropout.sample_ids = row_samples_;
        dropout.positions = positions_;
    }
    return dropout;
}

Dropout TokenRows::of_places(Dropout dropout, const at::Tensor& places) const {
    if (dropout.p > 0) {
        dropout.sample_ids = dropout.sample_ids.index_select(0, places.floor_divide(width_));
        dropout.positions = places.remainder(width_);
    }
    return dropout;
}

}  // namespace hetseq::detail
