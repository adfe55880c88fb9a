#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "hetseq/util/owned_range.hpp"
#include "hetseq/model/tensor_registry.hpp"

namespace hetseq {

/// A tensor like the flat gradients, in which parameters may have theirs; and what a model sums
/// beside them.
struct GradientSet {
    at::Tensor flat = {};                // (n), padding always zero
    std::vector<at::Tensor> views = {};  // by parameter, in layout order
    at::Tensor update_sums = {};         // like `Model::update_sums`; undefined: there are none
};

/// All trainable parameters that a model holds (`TensorRegistry::is_held`) as views into one flat
/// tensor, their gradients likewise. Laid out in reverse registration order, in which backward
/// finishes them, each padded to 64 bytes with zeros.
class FlatParameters {
public:
    static constexpr std::int64_t not_held = -1;

    struct Parameter {
        std::string name;
        at::Tensor tensor;        // the model's own, now a view into `values()`
        std::int64_t offset = 0;  // elements
        std::int64_t numel = 0;   // without padding
        bool decays = true;       // weight decay applies
        double learning_rate_factor = 1;
    };

    /// Moves the parameters of `model` (one floating dtype, one device) into flat storage. A tied
    /// parameter counts once. `learning_rate_factor`: what the learning rate is multiplied by for a
    /// parameter; empty: 1 for all. There may be none where a stage of a model holds no trained
    /// one. Throws BadConfig where none of the whole model is trained, and for a factor that is
    /// negative or not finite.
    FlatParameters(const TensorRegistry& model,
                   const std::function<bool(const std::string&)>& decays,
                   const std::function<double(const std::string&)>& learning_rate_factor = {});

    const std::vector<Parameter>& parameters() const noexcept {
        return parameters_;
    }  // in layout order
    /// The elements that a parameter of this many takes in it.
    static std::int64_t padded(std::int64_t numel, std::int64_t element_size);
    /// Of the whole model, in the order of its layout. Those that are not held have no place here:
    /// their offset is `not_held`.
    const std::vector<Parameter>& all_parameters() const noexcept { return all_parameters_; }
    /// The elements of the whole model, padding included.
    std::int64_t all_numel() const noexcept;
    /// The model is cut over ranks, which hold some of its units each.
    bool is_part() const noexcept { return is_part_; }
    /// Norms need what other ranks hold: parameters or their state are cut over ranks.
    bool is_cut() const noexcept { return is_part_ || !state_ranges_.empty(); }
    at::Tensor values() const { return values_; }        // (n)
    at::Tensor gradients() const { return gradients_; }  // (n), padding always zero
    void zero_gradients();
    /// The gradients, without update sums.
    GradientSet gradient_set() const { return set_of(gradients_); }
    /// Another one, of zeros.
    GradientSet new_gradient_set() const;
    /// From now on the gradients are those of `set`, with what it holds.
    void use(const GradientSet& set);

    /// Runs of neighbours that share `decays` and the factor.
    struct Segment {
        std::int64_t offset = 0;
        std::int64_t numel = 0;
        bool decays = true;
        double learning_rate_factor = 1;
    };
    const std::vector<Segment>& segments() const noexcept { return segments_; }

    /// At most this many elements of one parameter, counted from its first. Norms are sums of
    /// blocks' squares in the order of blocks, and shards end where blocks do: so a norm has the
    /// same bits wherever its squares are computed.
    static constexpr std::int64_t most_in_block = 16384;
    struct Block {
        std::int64_t offset = 0;  // elements
        std::int64_t numel = 0;   // without padding
    };
    const std::vector<Block>& blocks() const noexcept { return blocks_; }  // in layout order
    /// The number that each of them has among all blocks of the whole model, ascending.
    const std::vector<std::size_t>& block_numbers() const noexcept { return block_numbers_; }
    /// Of the whole model, whatever is held of it.
    std::size_t all_blocks() const noexcept { return all_blocks_; }

    /// Of parameters that several stages of a model hold, one stage counts the gradients in norms.
    /// These here are counted elsewhere; names of others are ignored. Before a norm is made.
    void count_elsewhere(const std::vector<std::string>& names);
    bool counts(const Parameter& parameter) const {
        return counted_elsewhere_.count(parameter.name) == 0;
    }

    /// Cuts the optimizer's state over ranks, before an optimizer is made: `ranges` cover
    /// `values()` in order and end where blocks do. This rank is `rank`, and holds the state of
    /// what it owns.
    void shard_state(std::vector<OwnedRange> ranges, int rank);
    /// By whom the state is held; empty: by every rank.
    const std::vector<OwnedRange>& state_ranges() const noexcept { return state_ranges_; }

    /// Elements whose state this rank holds: all, unless the state is cut.
    struct Held {
        std::int64_t offset = 0;        // in `values()`
        std::int64_t numel = 0;         // with padding
        std::int64_t state_offset = 0;  // in a tensor of the state, which holds these alone
    };
    const std::vector<Held>& held() const noexcept { return held_; }  // in layout order
    std::int64_t held_numel() const noexcept;                         // of all
    /// A tensor of the state (held_numel), zero, of the parameters' type and device.
    at::Tensor state_zeros() const;

private:
    GradientSet set_of(const at::Tensor& flat) const;

    bool is_part_ = false;
    std::vector<Parameter> all_parameters_;
    std::vector<Parameter> parameters_;
    std::vector<Segment> segments_;
    std::vector<Block> blocks_;
    std::vector<std::size_t> block_numbers_;
    std::size_t all_blocks_ = 0;
    std::set<std::string> counted_elsewhere_;
    std::vector<OwnedRange> state_ranges_;
    std::vector<Held> held_;
    at::Tensor values_, gradients_;
};

}  // namespace hetseq
