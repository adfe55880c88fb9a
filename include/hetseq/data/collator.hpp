#pragma once

#include "hetseq/data/micro_batch.hpp"

namespace hetseq {

/// Makes a model's input of a corpus's rows. Pure, and called from the loader's thread.
class Collator {
public:
    virtual ~Collator() = default;

    /// Fills `tensors` and `weights` of a micro-batch; the loader fills the rest. `rows`: by field
    /// name, (n, row shape...) in the schema's memory type, n >= 1; valid only during the call. Of
    /// a ragged field NAME the rows' values laid end to end, and NAME_offsets, (n + 1) int64 from
    /// 0, where each begins (`padded_rows`). `sample_ids`: (n) int64. The tensors own their memory
    /// (CPU; the loader pins and copies it).
    virtual MicroBatch collate(const TensorDict& rows, const at::Tensor& sample_ids) const = 0;
};

}  // namespace hetseq
