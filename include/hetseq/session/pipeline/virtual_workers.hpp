#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace hetseq {

struct Topology;

/// The ranks of the one virtual worker that --virtual-workers names, in the order of the list: all
/// for "auto", else ranks ("3"), ranges ("0-3": those of them that there are) or hosts, joined by
/// "+". Throws BadConfig for a malformed list, for several workers ("0+1,2+3"), and for a name that
/// is no rank or host.
std::vector<int> ranks_of_worker(const std::string& list, const Topology& topology);

/// The numbers of units of --stage-units, by stage ("3+4+2"); empty for "auto". Throws BadConfig.
std::vector<std::size_t> parse_stage_units(const std::string& text);

}  // namespace hetseq
