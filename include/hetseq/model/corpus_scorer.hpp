#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "hetseq/data/micro_batch.hpp"

namespace hetseq {

struct ForwardResult;

/// Scores a model's output over a whole corpus where no metric of single samples can (BLEU): by
/// sums over samples and ranks, which are read when all are added.
class CorpusScorer {
public:
    virtual ~CorpusScorer() = default;
    virtual std::size_t sums() const = 0;
    /// Adds the samples of `batch` to `sums` (sums() of them). `result` is what the model's forward
    /// pass gave for them.
    virtual void add(const MicroBatch& batch,
                     const ForwardResult& result,
                     std::span<double> sums) = 0;
    /// The scores, in the order of `Model::scores`.
    virtual std::vector<double> values(std::span<const double> sums) const = 0;
};

}  // namespace hetseq
