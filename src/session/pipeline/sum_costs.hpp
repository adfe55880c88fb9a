#pragma once

#include <span>
#include <vector>

#include "hetseq/train/pipeline/link_costs.hpp"

namespace hetseq {

class HostComm;
class MpiEnvironment;
struct RunSettings;

/// What an all-reduce of `mb` MiB over `ranks` should take by the links between them [ms]; 0 for a
/// single rank. `links`: [from][to], as measured.
double sum_ms_by_links(const RunSettings& settings,
                       const std::vector<std::vector<LinkCost>>& links,
                       std::span<const int> ranks,
                       double mb);

/// Collective; the same on all ranks. What an all-reduce over all ranks takes, of what links say.
double measured_sum_factor(const MpiEnvironment& environment,
                           const HostComm& world,
                           const RunSettings& settings,
                           const std::vector<std::vector<LinkCost>>& links);

}  // namespace hetseq
