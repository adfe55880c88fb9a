#pragma once

#include <cstdint>

#include "hetseq/data/loading/micro_batch.hpp"

namespace hetseq {

/// Makes a model's input from the rows of a corpus. It has no state, and the loader's thread calls
/// it.
class Collator {
public:
    virtual ~Collator() = default;

    /// Fills `tensors` and `weights` of a micro-batch; the loader fills the rest. `rows` has each
    /// field under its name: (n, row shape...) in the schema's memory type, n >= 1. It is valid
    /// only during the call. For a ragged field NAME it has the rows' values end to end, and under
    /// NAME_offsets, (n + 1) int64, where each row begins, from 0 (see `padded_rows`).
    /// `sample_ids`: (n) int64. The tensors own their memory, on the CPU; the loader pins and
    /// copies it.
    virtual MicroBatch collate(const TensorDict& rows, const at::Tensor& sample_ids) const = 0;

    /// The same for what is drawn anew in each epoch, from 0; validation has only epoch 0. What is
    /// drawn is a function of the seed, the epoch and the sample, so that it does not depend on the
    /// batch. The loader calls this.
    virtual MicroBatch collate_in_epoch(const TensorDict& rows,
                                        const at::Tensor& sample_ids,
                                        std::int64_t /*epoch*/) const {
        return collate(rows, sample_ids);
    }
};

/// What `collator` makes of them. Throws BadConfig where it asks `rows` for a field that they do
/// not have.
MicroBatch collated(const Collator& collator,
                    const TensorDict& rows,
                    const at::Tensor& sample_ids,
                    std::int64_t epoch);

}  // namespace hetseq
