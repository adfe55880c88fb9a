#pragma once

#include <cmath>
#include <cstdint>

#include "aligned_array.hpp"
#include "packed_transformer.hpp"

namespace hetseq::detail {

/// The state of the rows (tokens) that go through a model's layers, and what its parts need on the
/// way. Every row takes whole groups.
template <class T>
class RowPass {
public:
    explicit RowPass(const PackedTransformer<T>& model) : model_{model} {}

    /// Makes room for `rows`, whose contents are lost.
    void start(std::int64_t rows);

    std::int64_t rows() const { return rows_; }
    std::int64_t stride() const { return whole_groups<T>(model_.width); }
    const T* x() const { return x_.data(); }
    T* x() { return x_.data(); }
    T* seen() { return seen_.data(); }  // what attention gives
    T* qkv() { return wide_.data(); }
    std::int64_t qkv_stride() const { return whole_groups<T>(3 * model_.width); }
    T* query() { return wide_.data(); }  // `stride` apart

    /// Row i becomes a token of `table` at a position.
    void embed(std::int64_t i,
               const PackedTable<T>& table,
               std::int64_t token,
               const PackedTable<T>& positions,
               std::int64_t position);
    void normalise(const PackedNorm<T>& norm);

    /// `attend` reads `qkv` and fills `seen`.
    template <class Attend>
    void self_attention(const PackedSelfAttention<T>& part, const Attend& attend) {
        part.qkv.apply(before(part.norm), rows_, qkv());
        attend();
        part.output.apply(seen(), rows_, y_.data());
        after(part.norm);
    }

    /// `attend` reads `query` and fills `seen`.
    template <class Attend>
    void cross_attention(const PackedCrossAttention<T>& part, const Attend& attend) {
        part.query.apply(before(part.norm), rows_, query());
        attend();
        part.output.apply(seen(), rows_, y_.data());
        after(part.norm);
    }

    void feed_forward(const PackedFeedForward<T>& part);

private:
    const T* before(const PackedNorm<T>& norm);
    void after(const PackedNorm<T>& norm);
    void normalise(const T* x, const T* residual, const PackedNorm<T>& norm, T* out);

    const PackedTransformer<T>& model_;
    std::int64_t rows_ = 0;
    AlignedArray<T> x_, y_, normed_, seen_, wide_, inner_;
};

}  // namespace hetseq::detail
