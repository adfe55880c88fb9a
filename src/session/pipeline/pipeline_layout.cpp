#include "hetseq/session/pipeline/pipeline_layout.hpp"

#include "hetseq/balance/pipeline/simulate_pipeline.hpp"

namespace hetseq {

PipelineLayout given_layout(std::vector<int> ranks,
                            const std::vector<std::size_t>& units,
                            std::int64_t micro_batch,
                            std::size_t extra_in_flight) {
    PipelineLayout layout{.ranks = std::move(ranks), .cut = {}, .micro_batch = micro_batch};
    std::size_t begin = 0;
    for (std::size_t s = 0; s < units.size(); ++s) {
        layout.cut.units.push_back({begin, begin + units[s]});
        layout.cut.most_in_flight.push_back(most_in_flight(units.size(), s, extra_in_flight));
        begin += units[s];
    }
    return layout;
}

}  // namespace hetseq
