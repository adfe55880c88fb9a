#include "hetseq/data/padded_rows.hpp"

#include <algorithm>
#include <cstring>

#include <ATen/ATen.h>

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

}  // namespace hetseq
