#pragma once

#include <vector>

#include "hetseq/session/run_settings.hpp"

namespace hetseq {

class HostComm;
class Replica;
class SharePlan;

/// Collective. The ranks that a job of GPUs and CPUs is faster with: all, or those on GPUs alone,
/// where the work that the CPUs take does not pay for sums that go through host memory. Decided by
/// the measured costs of `shares` and by some sums of gradients now. Says so if ranks are left out.
std::vector<int> working_ranks(const HostComm& world,
                               const RunSettings& settings,
                               Replica& replica,
                               SharePlan& shares);

/// Those of `ranks` that may have work, where the layout of virtual workers is to be found: all but
/// those of capacity 0 (--max-sentences, --max-tokens). Says so if some may have none. Elsewhere
/// such ranks stay.
std::vector<int> ranks_with_capacity(const RunSettings& settings, std::vector<int> ranks);

/// The options of a run on these ranks alone, renumbered from 0 in their order. The global batch
/// stays as it is.
SettledOptions options_on(const RunSettings& settings, const std::vector<int>& ranks);

/// The same where a layout leaves out the other ranks. If none of `ranks` has a capacity of its
/// own, they have the least of all ranks'.
SettledOptions options_in_layout(const RunSettings& settings, const std::vector<int>& ranks);

}  // namespace hetseq
