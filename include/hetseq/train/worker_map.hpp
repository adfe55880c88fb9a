#pragma once

#include <cstddef>
#include <vector>

#include "hetseq/data/order/batch_plan.hpp"

namespace hetseq {

/// Which ranks hold a replica of the model together: each worker's are the stages of a pipeline, in
/// order. The first of them leads: batches are cut over leaders, and the other ranks of a worker
/// have their leader's share.
class WorkerMap {
public:
    /// Each rank is a worker of its own.
    explicit WorkerMap(int ranks);
    /// By worker: its ranks, by stage. Each rank is in one of them.
    explicit WorkerMap(const std::vector<std::vector<int>>& stages);

    /// How many workers there are.
    int count() const noexcept { return count_; }
    int leader_of(int rank) const { return leader_of_.at(static_cast<std::size_t>(rank)); }
    bool leads(int rank) const { return leader_of(rank) == rank; }
    const std::vector<int>& leaders() const noexcept { return leader_of_; }  // by rank
    /// The slices that ranks load, by rank. `cut`: as a batch is cut over ranks, of which leaders
    /// alone have something.
    std::vector<Slice> loaded(const std::vector<Slice>& cut) const;

private:
    std::vector<int> leader_of_;  // by rank
    int count_ = 0;
};

}  // namespace hetseq
