#pragma once

#include <vector>

#include "hetseq/train/allocation_log.hpp"
#include "hetseq/train/share_plan.hpp"

namespace hetseq {

class Corpus;
class FlatParameters;
class HostComm;
class Loader;
class Model;
struct RankSetup;

/// What the first updates are measured on.
struct CalibrationSubject {
    Model& model;
    FlatParameters& parameters;
    Corpus& corpus;
    Loader& loader;
    const BatchPlan& plan;
};

/// What --balance file: repeats; nothing for another balance. Throws on all ranks.
RecordedAllocations replayed_allocations(const HostComm& world, const RankSetup& setup);

/// Collective. How batches are cut, as --balance says; "auto" measures the ranks whose cost
/// --cache-dir does not hold, unless all of them are `known` (by rank).
SharePlan make_shares(const HostComm& world,
                      const RankSetup& setup,
                      const RecordedAllocations& recorded,
                      const CalibrationSubject& subject,
                      std::vector<StepCost> known);

/// Collective. Keeps under --cache-dir, for later runs, what a run with balance auto has followed
/// to its end: `costs`, by rank, on rank 0 alone; and what this rank's memory held, if it ran out:
/// micro-batches of `reduced_micro_batch` (0: it did not).
void keep_costs(const HostComm& world,
                const RankSetup& setup,
                const CalibrationSubject& subject,
                const std::vector<StepCost>& costs,
                std::int64_t reduced_micro_batch);

}  // namespace hetseq
