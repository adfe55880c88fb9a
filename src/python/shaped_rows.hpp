#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hetseq/data/loading/micro_batch.hpp"

namespace hetseq {

/// The rows of a ragged field that have several dimensions each, stored as flat rows in row-major
/// order.
class ShapedRows {
public:
    /// `rows` are as collators get them, with NAME_shape, (n, dimensions) int64, where several
    /// dimensions are unequal. `form`: the shape of a row, -1 where it is unequal. Throws BadData,
    /// with the sample's number in the corpus, where the values of a row do not fit its shape.
    ShapedRows(const TensorDict& rows,
               const std::string& name,
               const std::vector<std::int64_t>& form,
               const at::Tensor& sample_ids);

    /// (n, the largest of each dimension), with `padding` where a row has no value.
    at::Tensor padded(double padding) const;
    /// (n) int64: of the one dimension that is unequal.
    at::Tensor lengths() const;
    /// True where several dimensions are unequal, and the file says the shapes.
    bool has_shapes() const noexcept { return has_shapes_; }

private:
    using Shape = std::vector<std::int64_t>;

    Shape shape_by_count(const Shape& form, std::int64_t values) const;
    Shape stored_shape(const TensorDict& rows, std::int64_t row) const;
    void check(std::int64_t row, const Shape& form, const at::Tensor& sample_ids) const;

    std::string name_;
    bool has_shapes_ = false;
    std::size_t unequal_ = 0;  // the first unequal dimension
    at::Tensor values_;        // (values) of all rows
    at::Tensor offsets_;       // (n + 1) int64
    std::vector<Shape> shapes_;
};

}  // namespace hetseq
