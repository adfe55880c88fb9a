#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace hetseq {

struct Topology;

/// The ranks of each virtual worker that --virtual-workers names, in the order of the list: ranks
/// ("3"), ranges ("0-3": those of them that there are) or hosts, joined by "+", and workers by ",".
/// "auto": all ranks are one worker. Throws BadConfig for a malformed list, for a name that is no
/// rank or host, and for a rank that is named twice.
std::vector<std::vector<int>> ranks_of_workers(const std::string& list, const Topology& topology);

/// What --stage-units says of a worker.
struct StageUnits {
    std::vector<std::size_t> units;   // by stage
    std::size_t extra_in_flight = 0;  // micro-batches, as `most_in_flight` takes them
};
/// By worker: "3+4+2,5+4:1" are three stages, and two with a micro-batch more in flight. Empty for
/// "auto". Throws BadConfig.
std::vector<StageUnits> parse_stage_units(const std::string& text);
/// The text that says the same.
std::string stage_units_text(const std::vector<StageUnits>& workers);

}  // namespace hetseq
