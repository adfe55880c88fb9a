#include "shaped_rows.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <span>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/data/files/shard_header.hpp"
#include "hetseq/data/schema.hpp"

#include "python_task.hpp"

namespace hetseq {

namespace {

using Dimensions = std::span<const std::int64_t>;

std::int64_t product(Dimensions shape) {
    return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

// The values of a row of this shape; -1 where they are more than a row may have.
std::int64_t values_of(Dimensions shape) {
    std::int64_t values = 1;
    for (const std::int64_t length : shape) {
        if (length < 0 || length > most_row_values || values > most_row_values)
            return -1;
        values *= length;
    }
    return values;
}

std::string text_of(Dimensions shape) {
    std::vector<std::string> parts;
    for (const std::int64_t length : shape)
        parts.push_back(length < 0 ? "None" : std::to_string(length));
    return "(" + join(parts, ", ") + ")";
}

// Copies a row of shape `own` to the corner of one of shape `all`, in pieces as long as possible.
// `bytes`: of a value.
void copy_row(const char* from, Dimensions own, char* to, Dimensions all, std::size_t bytes) {
    if (own.size() <= 1 || std::equal(own.begin() + 1, own.end(), all.begin() + 1)) {
        std::memcpy(to, from, static_cast<std::size_t>(product(own)) * bytes);
        return;
    }
    const std::size_t step = static_cast<std::size_t>(product(own.subspan(1))) * bytes;
    const std::size_t padded_step = static_cast<std::size_t>(product(all.subspan(1))) * bytes;
    for (std::int64_t i = 0; i < own.front(); ++i, from += step, to += padded_step)
        copy_row(from, own.subspan(1), to, all.subspan(1), bytes);
}

}  // namespace

ShapedRows::ShapedRows(const TensorDict& rows,
                       const std::string& name,
                       const std::vector<std::int64_t>& form,
                       const at::Tensor& sample_ids)
    : name_{name},
      has_shapes_{std::count(form.begin(), form.end(), -1) > 1},
      unequal_{static_cast<std::size_t>(std::find(form.begin(), form.end(), -1) - form.begin())},
      values_{rows.at(name).contiguous()},
      offsets_{rows.at(offsets_name(name)).contiguous()} {
    const auto* begins = offsets_.const_data_ptr<std::int64_t>();
    for (std::int64_t row = 0; row < sample_ids.numel(); ++row) {
        shapes_.push_back(has_shapes_ ? stored_shape(rows, row)
                                      : shape_by_count(form, begins[row + 1] - begins[row]));
        check(row, form, sample_ids);
    }
}

ShapedRows::Shape ShapedRows::shape_by_count(const Shape& form, std::int64_t values) const {
    Shape shape = form;
    shape[unequal_] = 1;
    shape[unequal_] = values / product(shape);
    return shape;
}

ShapedRows::Shape ShapedRows::stored_shape(const TensorDict& rows, std::int64_t row) const {
    const at::Tensor stored = rows.at(shape_name(name_))[row].contiguous();
    const auto* begin = stored.const_data_ptr<std::int64_t>();
    return {begin, begin + stored.numel()};
}

void ShapedRows::check(std::int64_t row, const Shape& form, const at::Tensor& sample_ids) const {
    const Shape& shape = shapes_.back();
    const auto* begins = offsets_.const_data_ptr<std::int64_t>() + row;
    const std::int64_t values = begins[1] - begins[0];
    const auto fits = [](std::int64_t expected, std::int64_t found) {
        return expected < 0 || expected == found;
    };
    const bool has_form = std::equal(form.begin(), form.end(), shape.begin(), fits);
    if (has_form && values_of(shape) == values)
        return;
    const std::string place = "field '" + name_ + "', sample " +
                              std::to_string(sample_ids[row].item<std::int64_t>()) + ": ";
    if (!has_form)
        throw BadData(place + "the row has the shape " + text_of(shape),
                      "the task expects " + text_of(form),
                      "mend the task's field, or write the shards anew");
    throw BadData(place + "the row does not fit its shape",
                  "it has " + std::to_string(values) + " values, and " + shape_name(name_) +
                      " says " + text_of(shape),
                  "write the shards anew");
}

at::Tensor ShapedRows::padded(double padding) const {
    Shape all(shapes_.front().size(), 0);
    for (const Shape& shape : shapes_)
        std::transform(all.begin(), all.end(), shape.begin(), all.begin(), [](auto a, auto b) {
            return std::max(a, b);
        });
    Shape size{std::ssize(shapes_)};
    size.insert(size.end(), all.begin(), all.end());
    at::Tensor result = at::full(size, padding, values_.options());
    const std::size_t bytes = values_.element_size();
    const auto* begins = offsets_.const_data_ptr<std::int64_t>();
    const auto* from = static_cast<const char*>(values_.const_data_ptr());
    auto* to = static_cast<char*>(result.data_ptr());
    const std::size_t row_bytes = static_cast<std::size_t>(product(all)) * bytes;
    for (std::size_t i = 0; i < shapes_.size(); ++i)
        if (begins[i + 1] > begins[i])
            copy_row(from + static_cast<std::size_t>(begins[i]) * bytes,
                     shapes_[i],
                     to + i * row_bytes,
                     all,
                     bytes);
    return result;
}

at::Tensor ShapedRows::lengths() const {
    at::Tensor lengths = at::empty({std::ssize(shapes_)}, at::kLong);
    auto* next = lengths.mutable_data_ptr<std::int64_t>();
    for (const Shape& shape : shapes_)
        *next++ = shape[unequal_];
    return lengths;
}

}  // namespace hetseq
