#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hetseq/model/model.hpp"
#include "hetseq/model/transformer/transformer_config.hpp"

namespace hetseq {

namespace detail {
struct TransformerWeights;
}

/// An encoder-decoder Transformer for translation. Parameters are stored under fairseq's names.
///
/// Input, for n pairs of S source tokens and T target tokens at most, N target tokens in all (the
/// end symbols count):
///   "source"          (n, S) int64, any id behind a source's end
///   "source_lengths"  (n) int64
///   "target_input"    (n, T) int64: the begin symbol, then the target without its last token; any
///                     id behind its end
///   "positions"       (N) int64, the target's tokens as indices into n * T
///   "labels"          (N) int64, the target's tokens, end symbols included
/// n and N may be 0.
///
/// Loss term "loss": cross entropy with label smoothing (Szegedy et al. 2016, "Rethinking the
/// Inception architecture"), (1 - e) * -log p(label) + e * mean over the vocabulary of -log p, as
/// fairseq counts it up to its choice of the mean, summed over target tokens. Metrics: "nll", the
/// sum of -log p(label), and "accuracy".
class Transformer : public Model {
public:
    virtual const TransformerConfig& config() const = 0;
    /// The parameters, for decoders: valid as long as the model, and changed with it.
    virtual const detail::TransformerWeights& weights() const = 0;
};

/// What belongs to a Transformer besides its network.
struct TransformerSetup {
    double label_smoothing = 0;                    // in [0, 1)
    std::vector<CompanionFile> vocabularies = {};  // stand beside the parameters
    std::vector<std::string> scores = {};          // that make_scorer's scorers compute
    std::function<std::unique_ptr<CorpusScorer>(const Transformer&)> make_scorer = {};
};

/// Throws BadConfig as `check`, or where the label smoothing is out of range.
std::shared_ptr<Transformer> make_transformer(const TransformerConfig& config,
                                              TransformerSetup setup = {});

}  // namespace hetseq
