#include "hetseq/data/loading/padded_rows.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include "hetseq/data/schema.hpp"

namespace hetseq {

at::Tensor row_lengths(const TensorDict& rows, const std::string& name) {
    const at::Tensor& offsets = rows.at(offsets_name(name));
    const std::int64_t samples = offsets.numel() - 1;
    return offsets.narrow(0, 1, samples) - offsets.narrow(0, 0, samples);
}

at::Tensor padded_rows(const TensorDict& rows,
                       const std::string& name,
                       double padding,
                       std::int64_t least) {
    const at::Tensor values = rows.at(name).contiguous();
    const at::Tensor offsets = rows.at(offsets_name(name)).contiguous();
    const auto* begins = offsets.const_data_ptr<std::int64_t>();
    const std::int64_t samples = offsets.numel() - 1;
    std::int64_t longest = least;
    for (std::int64_t i = 0; i < samples; ++i)
        longest = std::max(longest, begins[i + 1] - begins[i]);
    at::Tensor matrix = at::full({samples, longest}, padding, values.options());
    const std::size_t bytes = values.element_size();
    const auto* from = static_cast<const char*>(values.const_data_ptr());
    auto* to = static_cast<char*>(matrix.data_ptr());
    for (std::int64_t i = 0; i < samples; ++i)
        std::memcpy(to + static_cast<std::size_t>(i * longest) * bytes,
                    from + static_cast<std::size_t>(begins[i]) * bytes,
                    static_cast<std::size_t>(begins[i + 1] - begins[i]) * bytes);
    return matrix;
}

namespace {

// Empty if some row has a token behind padding.
std::vector<std::int64_t> leading_tokens(const at::Tensor& mask) {
    const at::Tensor is_token = mask.ne(0).contiguous();
    const auto width = static_cast<std::size_t>(is_token.size(1));
    const bool* row = is_token.const_data_ptr<bool>();
    std::vector<std::int64_t> lengths;
    lengths.reserve(static_cast<std::size_t>(is_token.size(0)));
    for (std::int64_t i = 0; i < is_token.size(0); ++i, row += width) {
        const void* const padding = std::memchr(row, 0, width);
        const std::size_t length =
            padding == nullptr ? width
                               : static_cast<std::size_t>(static_cast<const bool*>(padding) - row);
        if (std::memchr(row + length, 1, width - length) != nullptr)
            return {};
        lengths.push_back(static_cast<std::int64_t>(length));
    }
    return lengths;
}

// Most places are in the row of the one before, or in the next: a division takes longer than all
// else here.
bool are_tokens(const at::Tensor& places,
                const std::vector<std::int64_t>& lengths,
                std::int64_t width) {
    const at::Tensor values = places.contiguous();
    const auto* begin = values.const_data_ptr<std::int64_t>();
    std::int64_t row = 0;
    return std::all_of(begin, begin + values.numel(), [&](std::int64_t place) {
        if (place >= (row + 1) * width)
            ++row;
        if (place < row * width || place >= (row + 1) * width)
            row = place / width;
        return place - row * width < lengths[static_cast<std::size_t>(row)];
    });
}

}  // namespace

void note_row_lengths(MicroBatch& batch, const at::Tensor& mask, const at::Tensor& needed) {
    const std::int64_t width = mask.size(1);
    std::vector<std::int64_t> lengths = leading_tokens(mask);
    const bool has_tokens =
        std::all_of(lengths.begin(), lengths.end(), [](std::int64_t length) { return length > 0; });
    if (lengths.empty() || !has_tokens || !are_tokens(needed, lengths, width))
        return;
    const std::int64_t tokens = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
    if (tokens < mask.numel()) {
        const at::Tensor places = at::empty({tokens}, at::kLong);
        auto* place = places.mutable_data_ptr<std::int64_t>();
        for (std::size_t row = 0; row < lengths.size(); ++row) {
            std::iota(place, place + lengths[row], static_cast<std::int64_t>(row) * width);
            place += lengths[row];
        }
        batch.tensors["token_places"] = places;
    }
    batch.row_lengths = std::move(lengths);
}

}  // namespace hetseq
