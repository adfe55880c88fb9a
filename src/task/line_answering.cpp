#include "hetseq/task/line_answering.hpp"

#include <ATen/core/Tensor.h>
#include <ATen/ops/tensor.h>

#include "hetseq/data/schema.hpp"

namespace hetseq {

void put_ragged_field(TensorDict& fields,
                      const std::string& name,
                      std::span<const LineRow> rows,
                      std::vector<std::int32_t> LineRow::*values) {
    std::vector<std::int32_t> all;
    std::vector<std::int64_t> offsets{0};
    for (const LineRow& row : rows) {
        all.insert(all.end(), (row.*values).begin(), (row.*values).end());
        offsets.push_back(static_cast<std::int64_t>(all.size()));
    }
    fields[name] = at::tensor(all, at::kInt);
    fields[offsets_name(name)] = at::tensor(offsets, at::kLong);
}

}  // namespace hetseq
