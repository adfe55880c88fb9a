#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "hetseq/data/loading/micro_batch.hpp"

namespace hetseq {

struct ForwardResult;

/// Scores a model's output over a whole corpus where no metric of single samples can: by sums over
/// samples and ranks (BLEU), or by numbers kept of every sample (a rank correlation).
class CorpusScorer {
public:
    virtual ~CorpusScorer() = default;
    virtual std::size_t sums() const = 0;
    /// Adds the samples of `batch` to `sums` (sums() of them). `result` is what the model's forward
    /// pass gave for them.
    virtual void add(const MicroBatch& batch,
                     const ForwardResult& result,
                     std::span<double> sums) = 0;
    /// What `add` kept of this rank's samples; by default nothing.
    virtual std::vector<double> kept() const { return {}; }
    /// The scores, in the order of `Model::scores`. `sums` are those of all ranks; `kept` is what
    /// the ranks kept, one rank after the other.
    virtual std::vector<double> values(std::span<const double> sums,
                                       std::span<const double> kept) const = 0;
};

}  // namespace hetseq
