#include "hetseq/data/loading/collator.hpp"

#include <stdexcept>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/text.hpp"

namespace hetseq {

MicroBatch collated(const Collator& collator,
                    const TensorDict& rows,
                    const at::Tensor& sample_ids,
                    const Collation& collation) {
    try {
        return collator.collate_for(rows, sample_ids, collation);
    } catch (const std::out_of_range&) {
        std::vector<std::string> fields;
        for (const auto& [name, tensor] : rows)
            fields.push_back(name);
        throw BadConfig("the batching takes a field that the dataset does not have",
                        "the dataset's are " + join(fields, ", "),
                        "choose --batching and --dataset of one --task");
    }
}

}  // namespace hetseq
