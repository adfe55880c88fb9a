#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hetseq/data/loading/micro_batch.hpp"

namespace hetseq {

struct ForwardResult;

/// Scores a model's output over a whole corpus where no metric of single samples can: by sums over
/// samples and ranks (BLEU), or by what is kept of every sample (a rank correlation).
class CorpusScorer {
public:
    virtual ~CorpusScorer() = default;
    virtual std::size_t sums() const = 0;
    /// Adds the samples of `batch` to `sums` (sums() of them). `result` is what the model's forward
    /// pass gave for them.
    virtual void add(const MicroBatch& batch,
                     const ForwardResult& result,
                     std::span<double> sums) = 0;
    /// How long `kept` will be, nearly [bytes]; by default nothing is kept.
    virtual std::int64_t kept_bytes() const { return 0; }
    /// What `add` kept of this rank's samples, in a form of the scorer's own. Rank 0 alone gathers
    /// it. Called once, after the last `add`.
    virtual std::string kept() { return {}; }
    /// The scores, in the order of `Model::scores`; on rank 0 alone. `sums` are those of all ranks;
    /// `kept` is what each rank kept.
    virtual std::vector<double> values(std::span<const double> sums,
                                       std::span<const std::string> kept) const = 0;
};

}  // namespace hetseq
