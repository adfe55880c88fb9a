#pragma once

#include "hetseq/data/corpus_plan.hpp"
#include "hetseq/state/allocation_log.hpp"
#include "hetseq/train/shares/share_plan.hpp"

namespace hetseq {

class Corpus;
class HostComm;
class Replica;
struct RunSettings;
struct StartingPoint;

/// How a run cuts its batches over the ranks.
struct StartingShares {
    SharePlan plan;              // as the run begins
    AllocationsByUpdate replay;  // cuts to repeat, each from its update on
};

/// How the work of the samples of `corpus` is counted, where they have unequal lengths.
RaggedWork ragged_work(const RunSettings& settings, const Corpus& corpus, const ItemCost& cost);

/// Collective. Shares in proportion to what the ranks declare, for samples of `corpus`.
SharePlan declared_shares(const HostComm& world, const RunSettings& settings, const Corpus& corpus);

/// Collective. How batches are cut, as --balance says. "auto" measures the ranks' speeds with
/// `replica`, unless --cache-dir or the run that is continued knows them. Throws on all ranks.
StartingShares make_starting_shares(const HostComm& world,
                                    const RunSettings& settings,
                                    Replica& replica,
                                    const StartingPoint& start);

}  // namespace hetseq
