#pragma once

#include "hetseq/train/shares/allocation_log.hpp"
#include "hetseq/train/shares/share_plan.hpp"

namespace hetseq {

class HostComm;
class Replica;
struct RunSettings;
struct StartingPoint;

/// How a run cuts its batches over the ranks.
struct Shares {
    SharePlan plan;              // as the run begins
    AllocationsByUpdate replay;  // cuts to repeat, each from its update on
};

/// Collective. How batches are cut, as --balance says. "auto" measures the ranks' speeds with
/// `replica`, unless --cache-dir or the run that is continued knows them. Throws on all ranks.
Shares make_shares(const HostComm& world,
                   const RunSettings& settings,
                   Replica& replica,
                   const StartingPoint& start);

}  // namespace hetseq
