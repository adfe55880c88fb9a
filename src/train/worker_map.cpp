#include "hetseq/train/worker_map.hpp"

#include <numeric>

#include "hetseq/util/error.hpp"

namespace hetseq {

WorkerMap::WorkerMap(int ranks) : leader_of_(static_cast<std::size_t>(ranks)), count_{ranks} {
    std::iota(leader_of_.begin(), leader_of_.end(), 0);
}

WorkerMap::WorkerMap(const std::vector<std::vector<int>>& stages)
    : count_{static_cast<int>(stages.size())} {
    constexpr int nobody = -1;
    std::size_t ranks = 0;
    for (const std::vector<int>& worker : stages)
        ranks += worker.size();
    leader_of_.assign(ranks, nobody);
    for (const std::vector<int>& worker : stages)
        for (const int rank : worker) {
            int& leader = leader_of_.at(static_cast<std::size_t>(rank));
            HETSEQ_ASSERT(leader == nobody);
            leader = worker.front();
        }
}

std::vector<Slice> WorkerMap::loaded(const std::vector<Slice>& cut) const {
    std::vector<Slice> slices;
    for (const int leader : leader_of_)
        slices.push_back(cut.at(static_cast<std::size_t>(leader)));
    return slices;
}

}  // namespace hetseq
