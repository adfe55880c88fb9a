#include "row_pass.hpp"

#include <ATen/Parallel.h>

#include "model/kernels/norm_loops.hpp"

namespace hetseq::detail {

namespace {

// Below this a thread of its own costs more than the rows.
constexpr std::int64_t parallel_rows = 64;

}  // namespace

template <class T>
void RowPass<T>::start(std::int64_t rows) {
    rows_ = rows;
    for (AlignedArray<T>* array : {&x_, &y_, &normed_, &seen_})
        array->room_for(rows * stride());
    wide_.room_for(rows * qkv_stride());
}

template <class T>
void RowPass<T>::embed(std::int64_t i,
                       const PackedTable<T>& table,
                       std::int64_t token,
                       const PackedTable<T>& positions,
                       std::int64_t position) {
    scale_and_add(table.row(token),
                  static_cast<T>(std::sqrt(static_cast<double>(model_.width))),
                  positions.row(position),
                  x() + i * stride(),
                  model_.width);
}

template <class T>
void RowPass<T>::normalise(const T* x, const T* residual, const PackedNorm<T>& norm, T* out) {
    at::parallel_for(0, rows_, parallel_rows, [&](std::int64_t first, std::int64_t last) {
        Normalisation<T> rows;
        const std::int64_t offset = first * stride();
        rows.x = x + offset;
        rows.residual = residual == nullptr ? nullptr : residual + offset;
        rows.out = out + offset;
        rows.rows = last - first;
        rows.width = model_.width;
        rows.stride = stride();
        rows.weight = norm.weight.data();
        rows.bias = norm.bias.data();
        rows.eps = TransformerWeights::norm_eps;
        detail::normalise(rows);
    });
}

template <class T>
void RowPass<T>::normalise(const PackedNorm<T>& norm) {
    normalise(x(), nullptr, norm, x());
}

template <class T>
const T* RowPass<T>::before(const PackedNorm<T>& norm) {
    if (!model_.pre_norm)
        return x();
    normalise(x(), nullptr, norm, normed_.data());
    return normed_.data();
}

template <class T>
void RowPass<T>::after(const PackedNorm<T>& norm) {
    if (model_.pre_norm)
        add_to(x(), y_.data(), rows_ * stride());
    else
        normalise(y_.data(), x(), norm, x());
}

template <class T>
void RowPass<T>::feed_forward(const PackedFeedForward<T>& part) {
    const std::int64_t inner_stride = whole_groups<T>(part.inner.outputs());
    T* inner = inner_.room_for(rows_ * inner_stride);
    part.inner.apply(before(part.norm), rows_, inner, !model_.gelu);
    if (model_.gelu)
        at::parallel_for(0, rows_, 1, [&](std::int64_t first, std::int64_t last) {
            gelu(inner + first * inner_stride, (last - first) * inner_stride);
        });
    part.output.apply(inner, rows_, y_.data());
    after(part.norm);
}

template class RowPass<float>;
template class RowPass<double>;

}  // namespace hetseq::detail
