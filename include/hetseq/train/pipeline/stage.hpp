#pragma once

#include <cstddef>
#include <vector>

#include "hetseq/model/chain.hpp"
#include "hetseq/train/parameter_holders.hpp"

namespace hetseq {

class Model;

/// What a rank of a pipeline computes, and whom it exchanges messages with.
struct Stage {
    static constexpr int nobody = -1;

    UnitRange units;
    std::size_t number = 0;  // of this stage, from 0
    std::size_t stages = 1;  // of the pipeline
    int previous = nobody;   // the ranks of the stages beside this one
    int next = nobody;
    std::size_t most_in_flight = 1;  // micro-batches whose forward is done and backward is not
    bool sends_gradients = false;    // to the stage in front: something trains there
    bool gets_gradients = false;     // from the next one: something trains here or in front

    bool is_first() const noexcept { return previous == nobody; }
    bool is_last() const noexcept { return next == nobody; }
};

/// How a chain is cut: its units, stage by stage, and the micro-batches that each has in flight.
struct ChainCut {
    std::vector<UnitRange> units;
    std::vector<std::size_t> most_in_flight;
};

/// By unit of the chain: whether any parameter is trained that it reads, or one in front of it.
std::vector<bool> trains_up_to(const Model& model);

/// The stage of this number, where `ranks` compute the stages of `cut`, in order.
Stage stage_of(const Model& model,
               const ChainCut& cut,
               const std::vector<int>& ranks,
               std::size_t number);

/// Adds the stages of `cut`, which `ranks` compute, in order, as holders of their parameters.
void add_holders(const Model& model,
                 const ChainCut& cut,
                 const std::vector<int>& ranks,
                 ParameterHolders& holders);

}  // namespace hetseq
