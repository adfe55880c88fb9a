#pragma once

#include <compare>
#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include "hetseq/balance/layout/layout_problem.hpp"

namespace hetseq {

/// What a worker's cuts depend on: workers of one kind have the same.
struct WorkerKind {
    std::vector<std::size_t> devices;           // by class
    std::vector<double> latency_ms, ms_per_mb;  // [from * classes + to]; empty: as in the chain

    auto operator<=>(const WorkerKind&) const = default;

    ChainLink link(const ChainProblem& chain, std::size_t from, std::size_t to) const;
};

/// Tells workers' kinds. Of many ranks, those with as many devices and links that differ by less
/// than a half are of one kind, that of the first: else measured links would make all unlike.
class WorkerKinds {
public:
    /// `problem` outlives the kinds.
    explicit WorkerKinds(const LayoutProblem& problem) : problem_{problem} {}

    WorkerKind of(std::span<const int> ranks);

private:
    const LayoutProblem& problem_;
    std::map<std::vector<std::size_t>, std::vector<WorkerKind>> known_;  // by devices
};

}  // namespace hetseq
