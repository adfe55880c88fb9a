#pragma once

#include <cstdint>

#include "hetseq/data/loading/micro_batch.hpp"

namespace hetseq {

/// What samples are collated for, besides their rows.
struct Collation {
    std::int64_t epoch = 0;      // from 0; validation has only epoch 0
    bool trains = false;         // they are trained on
    bool predicts = false;       // no loss is computed of them: nothing is masked, targets may lack
    std::int64_t announced = 0;  // what `Collator::announce` gave for them and others; 0: nothing
    std::int64_t first = 0;      // the place of the first of them among the announced ones
};

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

    /// The same for what is drawn anew in each epoch. What is drawn is a function of the seed, the
    /// epoch and the sample, so that it does not depend on the batch. The loader calls this.
    virtual MicroBatch collate_for(const TensorDict& rows,
                                   const at::Tensor& sample_ids,
                                   const Collation& /*collation*/) const {
        return collate(rows, sample_ids);
    }

    /// Whether `announce` does something, so that it is worth calling early.
    virtual bool announces() const { return false; }

    /// The loader calls this with all samples of a share, before it collates them, one micro-batch
    /// after the other. A collator that makes samples in other processes begins to, and gives the
    /// number, above 0, that these calls have as `Collation::announced`.
    virtual std::int64_t announce(const TensorDict& /*rows*/,
                                  const at::Tensor& /*sample_ids*/,
                                  const Collation& /*collation*/) const {
        return 0;
    }
};

/// What `collator` makes of them. Throws BadConfig where it asks `rows` for a field that they do
/// not have.
MicroBatch collated(const Collator& collator,
                    const TensorDict& rows,
                    const at::Tensor& sample_ids,
                    const Collation& collation);

}  // namespace hetseq
