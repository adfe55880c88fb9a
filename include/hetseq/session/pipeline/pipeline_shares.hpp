#pragma once

#include "hetseq/state/allocation_log.hpp"
#include "hetseq/train/shares/share_plan.hpp"

namespace hetseq {

class HostComm;
class Replica;
struct RunSettings;
struct StartingPoint;

/// Collective. The shares of pipelines: the first rank of each has that of all its ranks. Several
/// of them begin with the times that they were planned to take, or with those of the run that is
/// continued. `recorded`: what --balance file: repeats, perhaps nothing. Throws BadConfig on all
/// ranks where that is of another layout.
SharePlan pipeline_share_plan(const HostComm& world,
                              const RunSettings& settings,
                              const RecordedAllocations& recorded,
                              Replica& replica,
                              const StartingPoint& start);

}  // namespace hetseq
