#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "hetseq/data/loading/micro_batch.hpp"
#include "hetseq/data/prediction.hpp"
#include "hetseq/model/arithmetic.hpp"
#include "hetseq/model/chain.hpp"
#include "hetseq/model/corpus_scorer.hpp"
#include "hetseq/model/files/stored_model.hpp"
#include "hetseq/model/forward_result.hpp"

namespace hetseq {

enum class Mode { train, evaluate };

/// Everything besides parameters and input that a forward pass depends on.
struct ForwardContext {
    Mode mode = Mode::train;
    std::uint64_t seed = 1;   // of the run
    std::int64_t update = 0;  // counted from 0; with seed and sample ids it fixes every dropout
                              // mask
};

/// A metric is a sum over samples or tokens, divided in the end by the global weight of a loss
/// term.
struct MetricSchema {
    std::string name;      // "accuracy"
    std::size_t term = 0;  // index of the loss term whose weight divides it
    bool is_share = true;  // between 0 and 1, shown in percent
};

/// exp of a mean negative log-likelihood of tokens, which validation gives beside it.
struct PerplexitySchema {
    std::string name;  // "perplexity"
    std::string of;    // the name of that loss term or metric
};

/// A network and its summed losses. A sample's output may not depend on the other samples of its
/// micro-batch: no weighting would make the sum exact. It may depend on those of its group, which
/// no cut of a batch divides (`has_groups`).
class Model : public StoredModel {
public:
    virtual std::vector<std::string> loss_terms() const = 0;
    virtual std::vector<MetricSchema> metrics() const = 0;
    /// A perplexity for each loss term and metric that is a mean of negative log-likelihoods; by
    /// default none.
    virtual std::vector<PerplexitySchema> perplexities() const { return {}; }
    /// Names of the scores that `corpus_scorer` computes, beside the metrics; by default none.
    virtual std::vector<std::string> scores() const { return {}; }
    /// Whether the score of this name is between 0 and 1 and shown in percent.
    virtual bool score_is_share(const std::string& /*score*/) const { return false; }
    /// Whether they take more of the model than a forward's results, as decoding does: where it is
    /// cut, nobody has that.
    virtual bool scores_need_whole_model() const { return false; }
    /// Scores the model as its parameters are now; null where `scores` is empty. The model outlives
    /// it.
    virtual std::unique_ptr<CorpusScorer> corpus_scorer() { return nullptr; }
    virtual ForwardResult forward(const MicroBatch& batch, const ForwardContext& context) = 0;
    /// The model as a chain, in order: its units, one after the other, are what `forward` does.
    /// Each parameter is in at least one of them. Empty: it cannot be cut.
    virtual std::vector<ChainUnit> chain() const { return {}; }
    /// Whether it can be cut, where the units themselves may take long to find.
    virtual bool is_chain() const { return !chain().empty(); }
    /// Runs `units`, at least one, on what the unit in front of them gave. Of a model that cannot
    /// be cut these are {0, 0}: all of it.
    virtual Carried run_units(UnitRange units,
                              const Carried& carried,
                              const MicroBatch& batch,
                              const ForwardContext& context);
    /// From now on it has the parameters of these units alone, perhaps of none; all others keep
    /// their shape and type without memory. Those that it gets back have no values until they are
    /// drawn or read. Nothing is recomputed then.
    void hold(UnitRange units);
    /// All units unless `hold` was called; {0, 0} where there is no chain.
    UnitRange held_units() const;
    /// True if what comes of a sample depends on its group (`MicroBatch::groups`): in training with
    /// batch normalisation, always with a loss over groups.
    virtual bool has_groups(Mode /*mode*/) const { return false; }
    /// False if what comes of a sample depends on the other samples of its micro-batch, against the
    /// rule, as its author says.
    virtual bool is_exact() const { return true; }
    /// What the forwards of an update add up beside gradients, such as statistics of groups: the
    /// trainer zeroes it before an update and sums it over ranks with the gradients. Undefined:
    /// nothing. The same tensor each time.
    virtual at::Tensor update_sums() const { return {}; }
    /// An update was applied, and `update_sums` holds the sums of all its groups: the model takes
    /// them in, the same on all ranks.
    virtual void take_update_sums() {}
    /// True if `take_update_sums` looks at the parameters that the update has made.
    virtual bool takes_parameters() const { return false; }
    /// The stored tensors that have the same values on all ranks. By default all.
    virtual std::vector<NamedTensor> common_tensors() const { return stored_tensors(); }
    /// How many layers can be computed again in backward, of which forward then keeps the inputs
    /// alone: a matter of memory and time, never of results. By default the held units that say so.
    virtual std::int64_t recomputable_layers() const;
    /// From now on training computes the first `layers` of these again, in [0,
    /// recomputable_layers()].
    virtual void recompute(std::int64_t layers);
    std::int64_t recomputed_layers() const noexcept { return recomputed_layers_; }
    /// True if `predict` has something to say.
    virtual bool predicts() const { return false; }
    /// The model's statements on the samples of `batch`, without graph and dropout. Tensors that
    /// only losses need may be missing from `batch`. Every call gives the same names, types and row
    /// shapes in the same order, which need not be known before the first.
    virtual std::vector<Prediction> predict(const MicroBatch& batch);
    /// True if weight decay applies to the parameter of this name. By default it does not apply to
    /// biases and to the vectors of normalisations.
    virtual bool decays(const std::string& parameter_name) const;
    /// The factor of the learning rate for the parameter of this name: finite, >= 0.
    virtual double learning_rate_factor(const std::string& parameter_name) const;
    /// Converts parameters and buffers where they are. Tensors that are not floating point keep
    /// their types.
    void to(at::Device device, at::ScalarType dtype);
    void to(at::ScalarType dtype);
    /// Converts to the type of parameters that `precision` has, on `device`, and says how
    /// `run_forward` and `run_predict` (hetseq/model/autocast.hpp) compute.
    void to(at::Device device, Precision precision);
    const Arithmetic& arithmetic() const noexcept { return arithmetic_; }

protected:
    /// Whether training computes this unit, which is one of the layers of `recompute`, again.
    bool is_recomputed(std::size_t unit) const noexcept { return unit < recomputed_end_; }
    /// For a model that chooses the layers of `recompute` itself.
    void note_recomputed(std::int64_t layers) noexcept { recomputed_layers_ = layers; }

private:
    Arithmetic arithmetic_;
    std::optional<UnitRange> held_units_;  // none: all
    std::int64_t recomputed_layers_ = 0;
    std::size_t recomputed_end_ = 0;  // of the chain: behind the last one of these layers
};

}  // namespace hetseq
