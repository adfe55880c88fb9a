#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "hetseq/balance/layout/layout_problem.hpp"

#include "worker_kind.hpp"

namespace hetseq {

/// The state of all stages, asked for once: what answers may take long.
class StateTable {
public:
    /// `sharded_over`: ranks that each keep a part of the whole model's state; 1: none are.
    StateTable(const LayoutProblem& problem, std::size_t sharded_over);

    double mb(std::size_t size, const ChainStage& stage) const;

private:
    std::size_t units_ = 0;
    std::vector<std::vector<std::vector<double>>> mb_;  // by size, class, begin and end
};

/// The chain of one size on a worker's devices alone.
struct WorkerChain {
    ChainProblem problem;              // classes without devices are left out
    std::vector<std::size_t> classes;  // that the problem's are in the layout's

    std::vector<ChainStage> in_layout(std::span<const ChainStage> stages) const;
};

/// `state` outlives the chain.
WorkerChain worker_chain(const LayoutProblem& problem,
                         const StateTable& state,
                         std::size_t size,
                         const WorkerKind& kind);

/// No more of each class than there are units, and fewer where the search for a cut would be long:
/// the most numerous class loses one after the other, of equal ones the last.
std::vector<std::size_t> searchable_devices(std::vector<std::size_t> devices, std::size_t units);

}  // namespace hetseq
