#include "hetseq/session/pipeline/pipeline_layout.hpp"

#include <algorithm>
#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/balance/pipeline/simulate_pipeline.hpp"

namespace hetseq {

std::vector<int> PipelineLayout::ranks() const {
    std::vector<int> all;
    for (const WorkerLayout& worker : workers)
        all.insert(all.end(), worker.ranks.begin(), worker.ranks.end());
    std::sort(all.begin(), all.end());
    return all;
}

PipelineLayout::Place PipelineLayout::place_of(int rank) const {
    for (std::size_t worker = 0; worker < workers.size(); ++worker) {
        const std::vector<int>& own = workers[worker].ranks;
        const auto found = std::find(own.begin(), own.end(), rank);
        if (found != own.end())
            return {worker, static_cast<std::size_t>(found - own.begin())};
    }
    HETSEQ_ASSERT(!"a rank without a stage");
    return {};
}

UnitRange PipelineLayout::units_of(int rank) const {
    const Place place = place_of(rank);
    return workers[place.worker].cut.units[place.stage];
}

std::vector<std::vector<int>> PipelineLayout::ranks_by_worker() const {
    std::vector<std::vector<int>> all;
    for (const WorkerLayout& worker : workers)
        all.push_back(worker.ranks);
    return all;
}

void PipelineLayout::renumber(const std::vector<int>& ranks) {
    for (WorkerLayout& worker : workers)
        for (int& rank : worker.ranks)
            rank = static_cast<int>(std::lower_bound(ranks.begin(), ranks.end(), rank) -
                                    ranks.begin());
}

WorkerLayout given_worker(std::vector<int> ranks,
                          const std::vector<std::size_t>& units,
                          std::int64_t micro_batch,
                          std::size_t extra_in_flight) {
    WorkerLayout layout{.ranks = std::move(ranks),
                        .cut = {},
                        .micro_batch = micro_batch,
                        .extra_in_flight = extra_in_flight};
    std::size_t begin = 0;
    for (std::size_t s = 0; s < units.size(); ++s) {
        layout.cut.units.push_back({begin, begin + units[s]});
        layout.cut.most_in_flight.push_back(most_in_flight(units.size(), s, extra_in_flight));
        begin += units[s];
    }
    return layout;
}

}  // namespace hetseq
