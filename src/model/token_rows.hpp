#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "hetseq/data/loading/micro_batch.hpp"

#include "transformer_ops.hpp"

namespace hetseq::detail {

/// The rows that a network of tokens computes on: those of `batch` without padding, where the batch
/// says which these are (`note_row_lengths`), else all n * T.
class TokenRows {
public:
    /// The batch has "input_ids" (n, T) and may have "attention_mask" (n, T).
    explicit TokenRows(const MicroBatch& batch);

    std::int64_t sequences() const noexcept { return sequences_; }
    std::int64_t width() const noexcept { return width_; }  // T
    bool is_packed() const noexcept { return places_.defined(); }
    /// Which keys are tokens, (n, T) bool; undefined: all.
    const at::Tensor& key_mask() const noexcept { return key_mask_; }
    /// Where each sequence's rows begin, (n + 1); empty if rows of padding are among them.
    const std::vector<std::int64_t>& begins() const noexcept { return begins_; }

    /// (n, T) or (n, T, H) to rows (N) or (N, H), and back with zeros for padding.
    at::Tensor packed(const at::Tensor& padded) const;
    at::Tensor padded(const at::Tensor& rows) const;
    /// Positions of the rows, (N) int64; only where `is_packed`.
    const at::Tensor& positions() const noexcept { return positions_; }
    /// The rows of places in n * T, (M) int64.
    at::Tensor rows_of(const at::Tensor& places) const;

    RowPlaces row_places() const { return {sequences_, width_, places_, row_of_}; }

    /// `dropout` of samples, for all rows or for those of `places` (M).
    Dropout of_rows(Dropout dropout) const;
    Dropout of_places(Dropout dropout, const at::Tensor& places) const;

private:
    std::int64_t sequences_, width_;
    std::vector<std::int64_t> begins_;
    at::Tensor key_mask_;
    at::Tensor places_, positions_, row_samples_;  // (N) each, where packed
    at::Tensor row_of_;                            // (n * T), where packed on a GPU
};

}  // namespace hetseq::detail
